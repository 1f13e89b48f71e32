"""Data sets that are drawn by the library itself and need no files."""
