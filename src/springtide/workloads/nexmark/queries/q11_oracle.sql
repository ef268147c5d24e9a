WITH stepped AS (
    SELECT bidder, date_time, lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time) AS before FROM bid
), numbered AS (
    SELECT
        bidder, date_time,
        count(*) FILTER (before IS NULL OR date_time - before >= INTERVAL 10 SECOND)
            OVER (PARTITION BY bidder ORDER BY date_time RANGE UNBOUNDED PRECEDING) AS session
    FROM stepped
)
SELECT
    bidder, count(*) AS bid_count, min(date_time) AS session_start, max(date_time) + INTERVAL 10 SECOND AS session_end
FROM numbered
GROUP BY bidder, session
