"""Tools to look inside trained highway networks."""
