"""What is compared, a file for each framework: a peer is a generator function of a `Case`.

It prepares, yields, builds, and works and yields to the end.
"""
