"""Alignments: objectives that bring the features of source and target together."""
