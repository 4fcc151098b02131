"""Render the numbers of README and docs from `results/`: `python -m tools.render [--check]`.

A page marks what is rendered with comments, which Markdown does not show:

```
a step takes <!--=cell speed-thin {ms_a_step:.1f} peer=ours-->9.3<!--/--> ms
```

The first word of a mark is a function of `numbers.py`, the others are its arguments. `--check`
writes nothing and fails if a page differs.
"""

import argparse
import pathlib
import re
import shlex
import sys

from highway_keras.io import write_text

ROOT = pathlib.Path(__file__).parents[1]
MARK = re.compile(r"<!--=(?P<call>[^>]+?)-->(?P<text>.*?)<!--/-->", re.DOTALL)
NONE = "not measured yet"


def pages():
    """Return the Markdown pages that may hold rendered numbers."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def number(call):
    """Return the text that a mark stands for."""
    from tools import numbers, tables  # need pandas; the site is built without

    name, *words = shlex.split(call)
    if name.startswith("_") or not hasattr(numbers, name):
        raise KeyError(f"A page asks for {name!r}, which tools/numbers.py does not have.")
    named = dict(word.split("=", 1) for word in words if "=" in word)
    try:
        return getattr(numbers, name)(*(word for word in words if "=" not in word), **named)
    except tables.NotMeasured:
        return NONE


def render(text):
    """Return `text` with every marked number as `results/` has it now."""
    return MARK.sub(lambda m: f"<!--={m['call']}-->{number(m['call'])}<!--/-->", text)


def differences(text):
    """Return (call, text on the page, text from the results) of the marks that differ."""
    marks = ((m["call"], m["text"], number(m["call"])) for m in MARK.finditer(text))
    return [(call, before, now) for call, before, now in marks if before != now]


def main(arguments=None):
    """Render all pages, or check them; return 1 if a checked page differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.render")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    options = parser.parse_args(arguments)
    stale = 0
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for call, before, now in differences(text):
            stale += 1
            print(f"{page.relative_to(ROOT)}: {call}: {before.strip()!r} -> {now.strip()!r}")
        if not options.check:
            write_text(page, render(text))
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
