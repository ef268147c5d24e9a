"""The Nexmark queries: Springtide beside Spark's streaming SQL and Flink's SQL."""
