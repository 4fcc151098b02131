"""The implementations that are compared, a file for each framework.

A peer is a generator function of a `Case`. It prepares, yields, builds its network, and then yields
after each turn of work.
"""
