"""Studies: why it works, or does not, measured; target labels are read for analysis only and marked as oracle."""
