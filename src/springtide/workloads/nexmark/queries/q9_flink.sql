SELECT
    id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
    bidder, price, bid_date_time, bid_extra
FROM (
    SELECT
        auction.*, bid.bidder, bid.price, bid.date_time AS bid_date_time, bid.extra AS bid_extra,
        ROW_NUMBER() OVER (
            PARTITION BY auction.id ORDER BY bid.price DESC, bid.date_time, bid.bidder, bid.extra
        ) AS rank_number
    FROM auction JOIN bid ON bid.auction = auction.id AND bid.date_time BETWEEN auction.date_time AND auction.expires
)
WHERE rank_number = 1
