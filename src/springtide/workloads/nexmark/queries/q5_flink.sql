-- Ranks of a window keep more than the first one only by ROW_NUMBER, which has no ties: hence a join with the most.
WITH counted AS (
    SELECT auction, COUNT(*) AS num, window_start, window_end
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
)
SELECT counted.auction, counted.num, counted.window_start, counted.window_end
FROM counted
JOIN (
    SELECT MAX(num) AS num, window_start, window_end FROM counted GROUP BY window_start, window_end
) AS most
ON counted.window_start = most.window_start AND counted.window_end = most.window_end AND counted.num = most.num
