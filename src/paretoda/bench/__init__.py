"""Benchmarks: tasks x contenders x seeds, kept in a file with which a restart continues."""
