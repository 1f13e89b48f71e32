"""Reports: self-contained pages from plain values; nothing here trains or uses the network."""
