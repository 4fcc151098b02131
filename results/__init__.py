"""Measurements as CSV, a file for each kind; their rows, their spread, and where they come from."""

from highway_keras.results.measurements import (
    DIVERGED,
    TABLES,
    accuracies,
    authors_logs,
    read,
    read_rows,
    update_rows,
)
from highway_keras.results.spread import mean_text, spread, summarize, text

__all__ = [
    "DIVERGED",
    "TABLES",
    "accuracies",
    "authors_logs",
    "mean_text",
    "read",
    "read_rows",
    "spread",
    "summarize",
    "text",
    "update_rows",
]
