"""Objectives on the labelled source."""
