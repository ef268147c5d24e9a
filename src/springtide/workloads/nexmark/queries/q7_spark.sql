-- A side of a join may have one column of event time: that of the bids is their window.
SELECT b.auction, b.bidder, b.price, b.date_time, b.extra, b.window.end AS window_end
FROM (
    SELECT
        auction, bidder, price, timestamp_micros(unix_micros(date_time)) AS date_time, extra,
        window(date_time, '10 seconds') AS window
    FROM bid
) AS b
JOIN (
    SELECT max(price) AS price, window FROM bid GROUP BY window(date_time, '10 seconds')
) AS highest
ON b.price = highest.price AND b.window = highest.window
