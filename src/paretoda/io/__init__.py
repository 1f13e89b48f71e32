"""Files: written whole or not at all, read within limits, locked while somebody works on them."""
