"""Measurements: one CSV row a run, joined to the zoo's registry by model name."""
