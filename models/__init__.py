"""The zoo."""
