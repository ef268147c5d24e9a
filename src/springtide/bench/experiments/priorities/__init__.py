"""Two apps with more load than their workers hold."""
