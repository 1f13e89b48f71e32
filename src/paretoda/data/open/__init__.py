"""Opening data: from whatever the user gives to samples."""
