"""Render the numbers of README and docs from `results/`: `python -m tools.render [--check]`.

A page marks what is rendered with comments, which Markdown does not show:

```
a step takes <!--=thin100.ours.ms-->9.3<!--/--> ms
```

`numbers.py` says what each name stands for. `--check` writes nothing and fails if a page differs.
"""

import argparse
import pathlib
import re
import sys

from highway_keras.io import write_text

ROOT = pathlib.Path(__file__).parents[1]
MARK = re.compile(r"<!--=(?P<name>[^>]+?)-->(?P<text>.*?)<!--/-->", re.DOTALL)


def pages():
    """Return the Markdown pages that may hold rendered numbers."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def render(text):
    """Return `text` with every marked number as `results/` has it now.

    Raises:
        KeyError: If a mark has an unknown name.
    """
    return MARK.sub(_rendered, text)


def _rendered(mark):
    from tools.numbers import NUMBERS, number  # needs pandas; the site is built without

    name = mark["name"]
    if name not in NUMBERS:
        raise KeyError(f"A page asks for {name!r}, which tools/numbers.py does not have.")
    return f"<!--={name}-->{number(name)}<!--/-->"


def differences(text):
    """Return (name, text on the page, text from the results) of the marks that differ."""
    marks = [
        (mark["name"], mark["text"], MARK.match(_rendered(mark))) for mark in MARK.finditer(text)
    ]
    return [(name, before, now["text"]) for name, before, now in marks if before != now["text"]]


def main(arguments=None):
    """Render all pages, or check them; return 1 if a checked page differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.render")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    options = parser.parse_args(arguments)
    stale = 0
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for name, before, now in differences(text):
            stale += 1
            print(f"{page.relative_to(ROOT)}: {name}: {before.strip()!r} -> {now.strip()!r}")
        if not options.check:
            write_text(page, render(text))
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
