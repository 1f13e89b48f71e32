"""Evaluation: predictions of whole sets, metrics, validators that need no target label, and the oracle."""
