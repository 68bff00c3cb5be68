"""Case sets, scorers and benchmarks: what makes a change to the product attributable."""
