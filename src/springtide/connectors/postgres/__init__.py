"""A table in PostgreSQL as a sink: each epoch in one transaction with its number."""

from springtide.connectors.postgres.sink import Postgres, postgres

__all__ = ["Postgres", "postgres"]
