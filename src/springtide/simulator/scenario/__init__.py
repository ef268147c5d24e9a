"""What is simulated: scenarios, read strictly from TOML."""
