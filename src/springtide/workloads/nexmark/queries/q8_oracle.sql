WITH people AS (
    SELECT id, name, time_bucket(INTERVAL 10 SECOND, date_time) AS window_start FROM person
), sellers AS (
    SELECT DISTINCT seller AS id, time_bucket(INTERVAL 10 SECOND, date_time) AS window_start FROM auction
)
SELECT id, name, window_start, window_start + INTERVAL 10 SECOND AS window_end
FROM people JOIN sellers USING (id, window_start)
