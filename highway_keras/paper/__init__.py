"""The paper's experiments and statements, measured: rows for `results/`, pictures for the pages."""
