"""What every room stands on; knows nothing of clustering."""
