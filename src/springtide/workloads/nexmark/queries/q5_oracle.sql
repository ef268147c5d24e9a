WITH hops AS (
    SELECT auction, unnest(generate_series(0, 4)) * INTERVAL 2 SECOND AS back, date_time FROM bid
), counted AS (
    SELECT auction, time_bucket(INTERVAL 2 SECOND, date_time) - back AS window_start, count(*) AS num FROM hops GROUP BY ALL
)
SELECT auction, num, window_start, window_start + INTERVAL 10 SECOND AS window_end
FROM counted
QUALIFY num = max(num) OVER (PARTITION BY window_start)
