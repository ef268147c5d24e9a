SELECT category, CAST(SUM(price) AS DOUBLE) / COUNT(*) AS average
FROM (
    SELECT auction.id, auction.category, MAX(bid.price) AS price
    FROM auction JOIN bid ON bid.auction = auction.id AND bid.date_time BETWEEN auction.date_time AND auction.expires
    GROUP BY auction.id, auction.category
)
GROUP BY category
