SELECT best.*
FROM (
    SELECT min_by(
        struct(auction.*, bid.bidder, bid.price, bid.date_time AS bid_date_time, bid.extra AS bid_extra),
        struct(-bid.price, bid.date_time, bid.bidder, bid.extra)
    ) AS best
    FROM auction JOIN bid ON bid.auction = auction.id AND bid.date_time BETWEEN auction.date_time AND auction.expires
    GROUP BY auction.id
)
