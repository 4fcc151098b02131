"""README for the page of a package index, where relative links and pictures are broken.

`python tools/index_page.py URL REF` prints it with links into the repository at URL (without a
slash at the end), as of the tag or commit REF. A release builds the packages with that page; it
needs only Python.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
# A link or a picture whose target is neither a URL nor a place on the page.
RELATIVE = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!\w+:|#)(?P<target>[^)\s]+)\)")


def index_page(text, url, ref):
    """Return `text` with its relative links and pictures made absolute.

    Raises:
        FileNotFoundError: If one of them is not in the repository.
    """

    def absolute(link):
        target = link["target"].partition("#")[0]
        if not (ROOT / target).exists():
            raise FileNotFoundError(f"README.md leads to {target}, which is not in the repository.")
        view = "raw" if link["picture"] else "tree" if (ROOT / target).is_dir() else "blob"
        return f"{link['picture']}[{link['text']}]({url}/{view}/{ref}/{link['target']})"

    return RELATIVE.sub(absolute, text)


if __name__ == "__main__":
    sys.stdout.write(index_page((ROOT / "README.md").read_text("utf-8"), *sys.argv[1:]))
