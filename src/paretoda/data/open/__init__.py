"""Opening data: turns what the user gives into samples."""
