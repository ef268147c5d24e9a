SELECT
    auction, bidder, price, channel, url, date_time, extra,
    row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time, bidder, extra) AS rank_number
FROM bid
QUALIFY rank_number <= 10
