"""setup.cfg with the addresses of the project, which only a release knows.

`python tools/project_urls.py URL REF` prints it for a repository at URL (without a slash at the
end), as of the tag or commit REF. A release builds the packages with it; it needs only Python.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[1]
HEAD = "project_urls =\n"


def with_urls(text, url, ref):
    """Return the text of setup.cfg with the project's addresses added to those it has.

    Raises:
        ValueError: If there is no `project_urls` to add them to.
    """
    if text.count(HEAD) != 1:
        raise ValueError("setup.cfg must have one `project_urls`, and an address in it.")
    addresses = {
        "Source": url,
        "Documentation": f"{url}/blob/{ref}/docs/index.md",
        "Changelog": f"{url}/blob/{ref}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }
    lines = "".join(f"    {name} = {address}\n" for name, address in addresses.items())
    return text.replace(HEAD, HEAD + lines)


if __name__ == "__main__":
    sys.stdout.write(with_urls((ROOT / "setup.cfg").read_text("utf-8"), *sys.argv[1:]))
