"""Numerical methods on plain arrays: neighbours, eigenvectors, k-means, cuts."""
