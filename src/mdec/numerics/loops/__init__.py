"""Loops that NumPy cannot express, compiled on first use and cached on disk.

Every function works on plain contiguous arrays, releases the interpreter lock and
knows nothing of clustering ensembles. The package is imported where it is used, so
that ``import mdec`` neither loads nor runs the compiler.
"""
