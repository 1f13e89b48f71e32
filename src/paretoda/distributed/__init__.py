"""Everything that exists because a run can have several processes."""
