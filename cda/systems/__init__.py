"""One folder a product; none imports another."""
