"""Objectives on held-out target samples, whose gradient guides the weights of the others; none sees a target label."""
