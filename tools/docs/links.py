"""Check the links of a built site: `python -m tools.docs.links FOLDER`.

mkdocs checks the links of Markdown pages; this checks those of the HTML that came out, menus and
API included. Links to other sites are counted, not followed.
"""

import argparse
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """What a page links to, and what can be linked to on it.

    Attributes:
        links: Values of `href` and `src`.
        anchors: Values of `id` and `name`.
    """

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = set(), {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name"):
                self.anchors.add(value)


def check(folder):
    """Return the broken links of a site as (page, link), and the number of links to other sites."""
    folder = pathlib.Path(folder).resolve()
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    broken, others = [], 0
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                others += 1
            elif not _leads_somewhere(parts, path, folder, pages):
                broken.append((path.relative_to(folder).as_posix(), link))
    return broken, others


def _leads_somewhere(parts, path, folder, pages):
    target = urllib.parse.unquote(parts.path)
    file = folder / target.lstrip("/") if target.startswith("/") else path.parent / target
    file = path if not target else file.resolve()
    file = file / "index.html" if file.is_dir() else file
    if not file.is_file() or not file.is_relative_to(folder):
        return False
    anchor = urllib.parse.unquote(parts.fragment)
    return file not in pages or anchor in pages[file].anchors


def main(arguments=None):
    """Print the broken links of a site; return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs.links")
    parser.add_argument("folder", help="what `mkdocs build` wrote")
    folder = pathlib.Path(parser.parse_args(arguments).folder)
    broken, others = check(folder)
    for page, link in broken:
        print(f"{page}: {link} leads nowhere")
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    pages = sum(path.suffix == ".html" for path in files)
    print(f"{pages} pages, {size:.1f} MB, {len(broken)} broken links, {others} to other sites")
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
