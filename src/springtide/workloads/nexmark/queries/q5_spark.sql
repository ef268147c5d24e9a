SELECT hot.auction, hot.num, window.start AS window_start, window.end AS window_end
FROM (
    SELECT window, explode(filter(counts, c -> c.num = most)) AS hot
    FROM (
        SELECT window, max(num) AS most, collect_list(struct(auction, num)) AS counts
        FROM (
            SELECT auction, window, count(*) AS num
            FROM bid GROUP BY auction, window(date_time, '10 seconds', '2 seconds')
        )
        GROUP BY window
    )
)
