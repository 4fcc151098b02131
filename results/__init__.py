"""Measurements as CSV, a file for each kind."""

from highway_keras.results.rows import TABLES, accuracies, authors_logs, read
from highway_keras.results.spread import mean_text, spread, summarize, text

__all__ = [
    "TABLES",
    "accuracies",
    "authors_logs",
    "mean_text",
    "read",
    "spread",
    "summarize",
    "text",
]
