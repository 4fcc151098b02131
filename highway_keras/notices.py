"""What a user should know although nothing is wrong."""

import warnings


class Notice(UserWarning):
    """Something a user may not expect, in one line. The command prints it, too."""


def notice(text):
    """Warn about something a user may not expect."""
    warnings.warn(text, Notice, stacklevel=3)
