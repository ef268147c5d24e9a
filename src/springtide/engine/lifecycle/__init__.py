"""An app from its start to its end: checks, the query, its reports."""
