"""README and docs say what `results/` has, and README's links work on an index page."""

import re

import pytest
from claims import CLAIMS

from tools import release, tables

PAGES = {page.relative_to(tables.ROOT).as_posix(): page for page in tables.pages()}


def read(page):
    return PAGES[page].read_text(encoding="utf-8")


@pytest.mark.parametrize("page", CLAIMS)
def test_a_page_says_the_numbers_of_the_rows(page):
    text = " ".join(read(page).split())
    for claim in (" ".join(claim.split()) for claim in CLAIMS[page]()):
        assert text.count(claim) == 1, claim
        around = re.sub(r"[+-]?\d[\d.,e-]*", "", claim)  # a bare number proves nothing
        assert len(around.split()) >= 4, claim


@pytest.mark.parametrize("page", [page for page in PAGES if tables.BLOCK.search(read(page))])
def test_a_page_has_the_tables_of_the_rows(page):
    assert tables.render(read(page)) == read(page)


def test_an_index_page_leads_into_the_repository():
    text = read("README.md")
    targets = [link["target"].partition("#")[0] for link in release.RELATIVE.finditer(text)]
    assert targets and all((tables.ROOT / target).exists() for target in targets)
    page = release.readme(text, "https://host/us/it", "v1.0")
    assert not release.RELATIVE.search(page)
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page)
    assert pictures and all(p.startswith("https://host/us/it/raw/v1.0/docs/") for p in pictures)
    assert "](https://host/us/it/blob/v1.0/docs/tables.md)" in page
    assert "](https://arxiv.org/abs/1507.06228)" in page
