SELECT b.auction, b.bidder, b.price, b.date_time, b.extra, b.window_end
FROM (
    SELECT auction, bidder, price, date_time, extra, window_start, window_end
    FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
) AS b
JOIN (
    SELECT MAX(price) AS price, window_start, window_end
    FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
    GROUP BY window_start, window_end
) AS highest
ON b.price = highest.price AND b.window_start = highest.window_start AND b.window_end = highest.window_end
