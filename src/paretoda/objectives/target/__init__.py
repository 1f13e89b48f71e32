"""Objectives on the unlabelled target."""
