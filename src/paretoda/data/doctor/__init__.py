"""The doctor: finds what is wrong or unusual about a source and a target."""
