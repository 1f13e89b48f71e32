"""The doctor: what is wrong or strange about a source and a target."""
