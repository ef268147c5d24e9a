SELECT
    auction, bidder, price, date_time, extra,
    date_format(date_time, 'yyyy-MM-dd') AS dt, date_format(date_time, 'HH:mm') AS hm
FROM bid
