"""README and docs hold the numbers that `results/` has, and README its links on an index page."""

import re

import pytest

from tools import index_page, render
from tools.numbers import NUMBERS


@pytest.mark.parametrize("page", render.pages(), ids=lambda page: page.name)
def test_a_page_says_what_the_results_say(page):
    assert render.differences(page.read_text(encoding="utf-8")) == []


def test_every_number_is_on_some_page():
    marked = {m["name"] for page in render.pages() for m in render.MARK.finditer(page.read_text())}
    assert marked == {*NUMBERS}


def test_a_changed_number_is_found(monkeypatch, tmp_path, capsys):
    text = (render.ROOT / "README.md").read_text(encoding="utf-8")
    number = render.MARK.search(text, text.index("<!--=thin1000.ms-->"))
    page = tmp_path / "README.md"
    changed = text[: number.start("text")] + "1" + text[number.end("text") :]
    page.write_text(changed, encoding="utf-8")
    monkeypatch.setattr(render, "pages", lambda: [page])
    monkeypatch.setattr(render, "ROOT", tmp_path)
    assert render.main(["--check"]) == 1
    assert "README.md: thin1000.ms: '1' -> " in capsys.readouterr().out
    assert page.read_text(encoding="utf-8") == changed  # a check writes nothing
    assert render.main([]) == 0
    assert page.read_text(encoding="utf-8") == text


def test_an_unknown_name_is_an_error():
    with pytest.raises(KeyError, match="asks for 'speeed', which"):
        render.render("<!--=speeed-->1<!--/-->")


def test_an_index_page_leads_into_the_repository():
    text = (render.ROOT / "README.md").read_text(encoding="utf-8")
    page = index_page.index_page(text, "https://host/us/it", "v1.0")
    assert not index_page.RELATIVE.search(page)
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page)
    assert pictures and all(p.startswith("https://host/us/it/raw/v1.0/docs/") for p in pictures)
    assert "](https://host/us/it/blob/v1.0/docs/tables.md)" in page
    folder = index_page.index_page("[rows](results/)", "https://host/us/it", "v1.0")
    assert folder == "[rows](https://host/us/it/tree/v1.0/results/)"
    assert "](https://arxiv.org/abs/1507.06228)" in page


def test_an_index_page_has_no_dead_links():
    with pytest.raises(FileNotFoundError, match=r"leads to docs/none\.md, which is not in the re"):
        index_page.index_page("[a](docs/none.md)", "https://host/us/it", "v1.0")
