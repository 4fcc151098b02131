"""Formulas of the site as MathML, which browsers draw without a script; properdocs.yml names it."""

import html
import re

from latex2mathml.converter import convert

# A formula as pymdownx.arithmatex leaves it: inline in a span, on its own in a div.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content, **_):
    def mathml(formula):
        display = "block" if formula[1] == "div" else "inline"
        return convert(html.unescape(formula[2].strip()), display=display)

    return FORMULA.sub(mathml, content)
