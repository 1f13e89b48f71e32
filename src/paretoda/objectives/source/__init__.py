"""Losses on the labelled source."""
