"""Reports written from stored results."""
