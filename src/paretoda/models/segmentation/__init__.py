"""Networks that classify every pixel."""
