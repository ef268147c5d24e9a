SELECT top.*, rank + 1 AS rank_number
FROM (
    SELECT posexplode(min_by(
        struct(auction, bidder, price, channel, url, date_time, extra),
        struct(-price, date_time, bidder, extra),
        10
    )) AS (rank, top)
    FROM bid
    GROUP BY auction
)
