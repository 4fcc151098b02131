"""What a user reads: notices, and text from files and users, made harmless."""

import contextlib
import difflib
import re
import sys
import unicodedata
import warnings

MAX_IN_PICTURE = 60  # characters
_FORMULA = ("=", "+", "-", "@")
# Keras quotes a cause after these words, or in bold, before a list of arguments.
_BEFORE_CAUSE = re.compile(r".*(?:(?:Exception|Error) encountered:|\x1b\[1m)", re.DOTALL)


def printable(text):
    """Return `text` with every character that cannot be printed escaped, as Python writes it.

    These include line breaks, the control characters that a terminal obeys, those that change the
    direction of writing, and bytes of a file name that are not UTF-8. Spaces of any width stay,
    such as the narrow one in the name of a macOS screenshot.
    """

    def stays(character):
        return character.isprintable() or unicodedata.category(character) == "Zs"

    return "".join(c if stays(c) else ascii(c)[1:-1] for c in str(text))


def reason(error):
    """Return what an error says in one line: of a system error, the file and no number."""
    text = str(error)
    if getattr(error, "strerror", None):
        text = ": ".join(str(part) for part in (error.filename, error.strerror) if part)
    text = _BEFORE_CAUSE.sub("", text).partition("\x1b[0m")[0].strip() or type(error).__name__
    return text.splitlines()[0].partition(" Full object config")[0].rstrip(".")


def shows_progress(verbose):
    """Return whether to show progress, 1 or 0; `"auto"` shows it only on a terminal."""
    return int(sys.stdout.isatty() if verbose == "auto" else bool(verbose))


def did_you_mean(name, names):
    """Return a question that ends a message about an unknown name; empty if none is like it."""
    near = difflib.get_close_matches(str(name).lower(), names, n=3)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def spreadsheet_text(value):
    """Return a CSV cell that no spreadsheet takes for a formula; numbers stay numbers."""
    if not isinstance(value, str):
        return value
    value = printable(value)
    with contextlib.suppress(ValueError):  # a negative number begins like a formula
        float(value)
        return value
    return f"'{value}" if value.startswith(_FORMULA) else value


def in_picture(text):
    """Return `text` for Matplotlib: shortened, and its dollars escaped, which start mathematics."""
    text = printable(text)
    if len(text) > MAX_IN_PICTURE:
        text = f"{text[: MAX_IN_PICTURE - 1]}…"
    return text.replace("$", r"\$")


class Notice(UserWarning):
    """Something a user may not expect, in one line. The command prints it, too."""


def notice(text):
    """Warn about something a user may not expect."""
    warnings.warn(text, Notice, stacklevel=3)
