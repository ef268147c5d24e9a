WITH bids AS (
    SELECT auction.id, auction.seller, auction.expires, max(bid.price) AS price
    FROM auction JOIN bid ON bid.auction = auction.id AND bid.date_time BETWEEN auction.date_time AND auction.expires
    GROUP BY ALL
)
SELECT seller, id AS auction, expires, CAST(sum(price) OVER latest AS DOUBLE) / count(*) OVER latest AS average
FROM bids
WINDOW latest AS (PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)
