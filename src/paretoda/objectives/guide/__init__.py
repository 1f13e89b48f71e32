"""Guides: objectives on held-out target samples, without labels, whose gradient guides the weights of the others."""
