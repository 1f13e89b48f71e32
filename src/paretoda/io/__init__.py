"""Files: written atomically, read within limits, locked while a process works on them."""
