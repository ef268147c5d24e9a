-- A window of Flink's by processing time gives nothing if the input ends before it does. So bids are counted by the
-- window that they come in, and a row stands for its window until a newer one comes.
SELECT
    bidder, bid_count,
    CAST(TO_TIMESTAMP_LTZ(ten_seconds * 10, 0) AS TIMESTAMP(3)) AS window_start,
    CAST(TO_TIMESTAMP_LTZ(ten_seconds * 10 + 10, 0) AS TIMESTAMP(3)) AS window_end
FROM (
    SELECT bidder, ten_seconds, COUNT(*) AS bid_count
    FROM (SELECT bidder, UNIX_TIMESTAMP() / 10 AS ten_seconds FROM bid)
    GROUP BY bidder, ten_seconds
)
