"""The 23 queries, a file each: with Springtide, and in SQL for whoever else can run or check them."""
