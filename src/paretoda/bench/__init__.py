"""Benchmarks: tasks x contenders x seeds, kept in a file that a restart goes on with."""
