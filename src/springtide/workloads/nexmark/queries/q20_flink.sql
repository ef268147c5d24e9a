SELECT
    bid.auction, bid.bidder, bid.price, bid.channel, bid.url, bid.date_time AS bid_date_time, bid.extra AS bid_extra,
    auction.item_name, auction.description, auction.initial_bid, auction.reserve,
    auction.date_time AS auction_date_time, auction.expires, auction.seller, auction.category,
    auction.extra AS auction_extra
FROM bid JOIN auction ON bid.auction = auction.id
WHERE auction.category = 10
