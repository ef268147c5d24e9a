"""Kafka: Spark's connector, and what the driver asks a broker."""
