"""The main job for segmentation: what differs from classification, file by file."""
