SELECT p.id, p.name, p.window.start AS window_start, p.window.end AS window_end
FROM (
    SELECT id, name, window(date_time, '10 seconds') AS window FROM person
) AS p
JOIN (
    SELECT seller, window FROM auction GROUP BY seller, window(date_time, '10 seconds')
) AS a
ON p.id = a.seller AND p.window = a.window
