SELECT
    auction, strftime(date_time, '%Y-%m-%d') AS day,
    count(*) AS total_bids,
    count(*) FILTER (price < 10000) AS rank1_bids,
    count(*) FILTER (price >= 10000 AND price < 1000000) AS rank2_bids,
    count(*) FILTER (price >= 1000000) AS rank3_bids,
    min(price) AS min_price, max(price) AS max_price,
    CAST(sum(price) AS DOUBLE) / count(*) AS avg_price, CAST(sum(price) AS BIGINT) AS sum_price
FROM bid
GROUP BY ALL
