"""The command `highway-keras`, one file per family of commands."""
