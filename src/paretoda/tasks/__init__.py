"""The tasks of a run: classification and segmentation, one folder each."""
