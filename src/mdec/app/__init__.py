"""The page of `mdec app`: a table is dropped, read, clustered and explored.

A shell around the command line: tables are read by the functions of `mdec fit`, runs
are `mdec fit` in a child process, and what is explored is a result folder.
"""
