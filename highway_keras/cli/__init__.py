"""The command `highway-keras`, a file a family of commands."""
