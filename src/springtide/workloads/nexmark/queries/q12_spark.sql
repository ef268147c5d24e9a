SELECT bidder, count(*) AS bid_count, window.start AS window_start, window.end AS window_end
FROM bid
GROUP BY bidder, window(current_timestamp(), '10 seconds')
