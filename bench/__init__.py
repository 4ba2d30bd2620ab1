"""What measures the product; see README.md."""
