SELECT bid.auction, bid.bidder, bid.price, bid.date_time, side_input.`value`
FROM bid JOIN side_input ON MOD(bid.auction, 10000) = side_input.key
