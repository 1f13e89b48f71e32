"""Mathematics of small problems: inner products in, weights out. NumPy and SciPy only."""
