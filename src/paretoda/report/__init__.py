"""Reports: one self-contained page from plain values; nothing here trains, and nothing here asks the network."""
