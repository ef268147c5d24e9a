SELECT auction, bidder, 0.908D * price AS price, date_time, extra FROM bid
