"""Classification of images or feature vectors."""
