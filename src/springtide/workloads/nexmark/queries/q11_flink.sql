SELECT bidder, COUNT(*) AS bid_count, window_start AS session_start, window_end AS session_end
FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end
