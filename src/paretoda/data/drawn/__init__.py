"""Drawn data sets that need no files."""
