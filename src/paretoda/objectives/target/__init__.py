"""Losses on the unlabelled target."""
