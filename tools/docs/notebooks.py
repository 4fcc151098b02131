"""Pages of the notebooks: what a run left in them, and where to get or open them."""

import base64
import re
import urllib.parse

import nbformat

from tools.notebooks import notebooks


def pages(repository=""):
    """Return the text of each page, and the bytes of each picture, by its path in the site.

    Args:
        repository: Address of the repository, if it is known.
    """
    made = {}
    for path in notebooks():
        pictures, parts = {}, []
        for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
            parts += _markdown(cell, f"{path.stem}-{number}.png", pictures)
        made[f"notebooks/{path.stem}.md"] = page("\n\n".join(parts), path.name, repository)
        made |= {f"notebooks/{name}": data for name, data in pictures.items()}
    return made


def _markdown(cell, picture, pictures):
    """Return a cell and what it shows as parts of a page; put its picture into `pictures`."""
    if cell.cell_type == "markdown":
        return [cell.source]
    parts = [f"```python\n{cell.source}\n```"]
    printed = "".join(_text(output) for output in cell.outputs)
    if printed:
        parts.append(f"```{{ .text .printed }}\n{printed.rstrip()}\n```")
    for output in cell.outputs:
        if "image/png" in output.get("data", {}):
            pictures[picture] = base64.b64decode(output.data["image/png"])
            parts.append(f"![What the cell draws]({picture})")
    return parts


def _text(output):
    data = output.get("data", {})
    return output.get("text", "") if not data or "image/png" in data else data["text/plain"]


def page(text, name, repository=""):
    """Return the Markdown of a notebook with links into the site and a line of its own."""
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{_how_to_open(name, repository)}\n{links_to_pages(rest)}\n"


def links_to_pages(markdown):
    """Return `markdown` with links to notebooks as links to their pages."""
    return re.sub(r"\]\(([\w/.-]+)\.ipynb\)", r"](\1.md)", markdown)


def _how_to_open(name, repository):
    download = f"[Download this notebook]({name}){{ download }}"
    address = urllib.parse.urlsplit(repository)
    if address.netloc != "github.com":
        return download
    place = urllib.parse.quote(f"docs/notebooks/{name}", safe="")
    binder = f"https://mybinder.org/v2/gh/{address.path.strip('/')}/HEAD?labpath={place}"
    return f"[![Open in Binder](https://mybinder.org/badge_logo.svg)]({binder}) {download}"
