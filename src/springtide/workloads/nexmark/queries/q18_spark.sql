SELECT newest.*
FROM (
    SELECT max_by(
        struct(auction, bidder, price, channel, url, date_time, extra), struct(date_time, price, extra)
    ) AS newest
    FROM bid
    GROUP BY bidder, auction
)
