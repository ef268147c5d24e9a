WITH closing AS (
    SELECT auction.id, auction.category, max(bid.price) AS price
    FROM auction JOIN bid ON bid.auction = auction.id AND bid.date_time BETWEEN auction.date_time AND auction.expires
    GROUP BY ALL
)
SELECT category, CAST(sum(price) AS DOUBLE) / count(*) AS average FROM closing GROUP BY category
