"""An online auction, the workload of the Nexmark benchmark: its events, its 23 queries, and what each should give."""
