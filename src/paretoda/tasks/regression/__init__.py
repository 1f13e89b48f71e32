"""Regression: a number for each image or feature vector."""
