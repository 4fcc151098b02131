"""Measurements as CSV, a file for each kind."""

from highway_keras.results.rows import TABLES, accuracies, authors_logs, read
from highway_keras.results.spread import spread, summarize, text

__all__ = ["TABLES", "accuracies", "authors_logs", "read", "spread", "summarize", "text"]
