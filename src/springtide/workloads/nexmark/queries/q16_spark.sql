-- A streaming query has no count(DISTINCT ...): the sets are kept, and their sizes given.
SELECT
    channel,
    date_format(date_time, 'yyyy-MM-dd') AS day,
    max(date_format(date_time, 'HH:mm')) AS minute,
    count(*) AS total_bids,
    count(*) FILTER (WHERE price < 10000) AS rank1_bids,
    count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
    size(collect_set(bidder)) AS total_bidders,
    size(collect_set(bidder) FILTER (WHERE price < 10000)) AS rank1_bidders,
    size(collect_set(bidder) FILTER (WHERE price >= 10000 AND price < 1000000)) AS rank2_bidders,
    size(collect_set(bidder) FILTER (WHERE price >= 1000000)) AS rank3_bidders,
    size(collect_set(auction)) AS total_auctions,
    size(collect_set(auction) FILTER (WHERE price < 10000)) AS rank1_auctions,
    size(collect_set(auction) FILTER (WHERE price >= 10000 AND price < 1000000)) AS rank2_auctions,
    size(collect_set(auction) FILTER (WHERE price >= 1000000)) AS rank3_auctions
FROM bid
GROUP BY channel, date_format(date_time, 'yyyy-MM-dd')
