"""What runs on workers.

Everything here closes over plain values and the user's own functions; Spark carries it to the workers.
"""
