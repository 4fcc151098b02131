"""The hook of `mkdocs.yml`: add the generated pages, and point links into the site.

Pages of `docs/` are also read in the repository, so they link to `../results/`, and those of the
root to `docs/`. In the site all of them are in one folder. Links to notebooks lead to their pages.
"""

import pathlib
import re
import sys
import tempfile

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

# mkdocs is a script, and does not look in the working directory.
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
from tools.docs import api, live, notebooks, zoo
from tools.render import MARK, ROOT

FROM_ROOT = (
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "results/README.md",
)
_source = tempfile.TemporaryDirectory(prefix="highway-keras-docs-")


@event_priority(100)  # before mkdocstrings reads its paths
def on_config(config):
    """Add the generated pages to the navigation, and tell mkdocstrings where the source is."""
    api.link_source(ROOT, pathlib.Path(_source.name))
    config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [_source.name]
    sections = {title: pages for item in config.nav for title, pages in item.items()}
    sections["Networks"] += zoo.navigation()
    sections["API"] += api.navigation()
    return config


def on_files(files, config):
    """Add the generated pages, those of the repository's root, and the measurements."""
    made = {**zoo.pages(), **api.pages(), **live.pages(), **notebooks.pages(config.repo_url)}
    copied = [ROOT / name for name in FROM_ROOT] + sorted((ROOT / "results").glob("*.csv"))
    made |= {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in copied}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown, page, **_):
    """Remove the marks of rendered numbers, and point links of written pages into the site."""
    markdown = MARK.sub(lambda mark: mark["text"], markdown)
    name = page.file.src_uri
    if name == "zoo/index.md":
        markdown = zoo.links_to_cards(markdown)
    if "/" in name and not name.endswith("/index.md"):
        return markdown  # a made one
    up = "../" * name.count("/")
    markdown = notebooks.links_to_pages(markdown).replace(f"]({up}../", f"]({up}")
    markdown = markdown.replace("](docs/", "](")
    return re.sub(r"\]\((results/[\w-]+\.csv)\)", _measurement, markdown)


def _measurement(link):
    """Return a link to a file of results; to the list of them if it is not measured yet."""
    return link[0] if (ROOT / link[1]).is_file() else "](results/README.md)"
