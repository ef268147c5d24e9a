SELECT
    auction.*, bid.bidder, bid.price, bid.date_time AS bid_date_time, bid.extra AS bid_extra
FROM auction JOIN bid ON bid.auction = auction.id AND bid.date_time BETWEEN auction.date_time AND auction.expires
QUALIFY row_number() OVER (PARTITION BY auction.id ORDER BY bid.price DESC, bid.date_time, bid.bidder, bid.extra) = 1
