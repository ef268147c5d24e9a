WITH windowed AS (
    SELECT *, time_bucket(INTERVAL 10 SECOND, date_time) + INTERVAL 10 SECOND AS window_end FROM bid
)
SELECT auction, bidder, price, date_time, extra, window_end
FROM windowed
QUALIFY price = max(price) OVER (PARTITION BY window_end)
