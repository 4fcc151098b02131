"""Render the numbers of README and docs from `results/`: `python -m tools.render`.

`numbers.py` says how a page marks them. A test fails if a page differs.
"""

import re
import shlex

from benchmarks.rows import ROOT
from highway_keras.util.files import write_text
from tools import numbers, templates

MARK = re.compile(r"<!--=(?P<call>[^>]+?)-->(?P<text>.*?)<!--/-->", re.DOTALL)
NONE = "not measured yet"


def pages():
    """Return the Markdown pages that may hold rendered numbers."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def number(call):
    """Return the text that a mark stands for."""
    name, *words = shlex.split(call)
    named = dict(word.split("=", 1) for word in words if "=" in word)
    try:
        return getattr(numbers, name)(*(word for word in words if "=" not in word), **named)
    except templates.NotMeasured:
        return NONE


def render(text):
    """Return `text` with every marked number as `results/` has it now."""
    return MARK.sub(lambda m: f"<!--={m['call']}-->{number(m['call'])}<!--/-->", text)


def differences(text):
    """Return (call, text on the page, text from the results) of the marks that differ."""
    marks = ((m["call"], m["text"], number(m["call"])) for m in MARK.finditer(text))
    return [(call, before, now) for call, before, now in marks if before != now]


def main():
    """Render all pages, and print what changes."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for call, before, now in differences(text):
            print(f"{page.relative_to(ROOT)}: {call}: {before.strip()!r} -> {now.strip()!r}")
        write_text(page, render(text))


if __name__ == "__main__":
    main()
