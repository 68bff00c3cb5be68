"""What every server of the house shares: strict arguments, error text that never echoes, transports, quiet logs."""
