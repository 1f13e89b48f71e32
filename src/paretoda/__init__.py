"""ParetoDA."""
