"""Write the address of the repository into README.md and setup.cfg, for a release.

`python tools/release.py URL REF` takes the repository's URL, without a slash at the end, and the
tag or commit REF. A release builds the packages after it; it needs only Python.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
# A link or a picture whose target is neither a URL nor a place on the page.
RELATIVE = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!\w+:|#)(?P<target>[^)\s]+)\)")
HEAD = "project_urls =\n"


def readme(text, url, ref):
    """Return a page with its relative links and pictures made absolute, as an index needs it."""

    def absolute(link):
        view = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['text']}]({url}/{view}/{ref}/{link['target']})"

    return RELATIVE.sub(absolute, text)


def setup(text, url, ref):
    """Return the text of setup.cfg with the project's addresses added to those it has."""
    addresses = {
        "Source": url,
        "Documentation": f"{url}/blob/{ref}/README.md",
        "Changelog": f"{url}/blob/{ref}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }
    lines = "".join(f"    {name} = {address}\n" for name, address in addresses.items())
    return text.replace(HEAD, HEAD + lines)


if __name__ == "__main__":
    for name, write in {"README.md": readme, "setup.cfg": setup}.items():
        file = ROOT / name
        file.write_text(write(file.read_text("utf-8"), *sys.argv[1:]), "utf-8")
