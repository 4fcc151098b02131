"""What is compared, a file for each framework: a peer is a function of a `Case` and `Turns`.

It prepares, waits for its first turn, builds, and takes turns to the end.
"""
