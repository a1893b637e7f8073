"""What the whole package builds on: nothing here knows of clustering."""
