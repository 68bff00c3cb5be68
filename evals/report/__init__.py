"""The report of a run as one HTML file that asks nothing of a network."""
