"""Studies: measurements of why it works, or does not; target labels are read for analysis only and marked as oracle."""
