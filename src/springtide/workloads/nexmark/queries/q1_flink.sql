SELECT auction, bidder, 0.908e0 * price AS price, date_time, extra FROM bid
