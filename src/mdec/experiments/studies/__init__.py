"""Study files that come with the package, and the numbers that the paper published."""
