"""README and docs hold the numbers that `results/` has, and README its links on an index page."""

import ast
import pathlib
import re

import pytest

from tools import numbers, release, render


@pytest.mark.parametrize("page", render.pages(), ids=lambda page: page.name)
def test_a_page_says_what_the_results_say(page):
    assert render.differences(page.read_text(encoding="utf-8")) == []


def test_every_number_is_on_some_page():
    marks = (m for page in render.pages() for m in render.MARK.finditer(page.read_text()))
    called = {mark["call"].split()[0] for mark in marks}
    defined = set()
    for node in ast.parse(pathlib.Path(numbers.__file__).read_text()).body:
        defined |= {node.name} if isinstance(node, ast.FunctionDef) else set()
        defined |= {target.id for target in getattr(node, "targets", ())}
    public = {name for name in defined if name.islower() and not name.startswith("_")}
    assert public == called


def test_a_changed_number_is_found(monkeypatch, tmp_path, capsys):
    text = (render.ROOT / "README.md").read_text(encoding="utf-8")
    number = render.MARK.search(text, text.index("<!--=cell speed-thin {ms_a_step:.0f}"))
    page = tmp_path / "README.md"
    changed = text[: number.start("text")] + "1" + text[number.end("text") :]
    page.write_text(changed, encoding="utf-8")
    monkeypatch.setattr(render, "pages", lambda: [page])
    monkeypatch.setattr(render, "ROOT", tmp_path)
    assert render.differences(changed) == [(number["call"], "1", number["text"])]
    render.main()
    assert ": '1' -> " in capsys.readouterr().out
    assert page.read_text(encoding="utf-8") == text


def test_an_index_page_leads_into_the_repository():
    text = (render.ROOT / "README.md").read_text(encoding="utf-8")
    targets = [link["target"].partition("#")[0] for link in release.RELATIVE.finditer(text)]
    assert targets and all((render.ROOT / target).exists() for target in targets)
    page = release.readme(text, "https://host/us/it", "v1.0")
    assert not release.RELATIVE.search(page)
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page)
    assert pictures and all(p.startswith("https://host/us/it/raw/v1.0/docs/") for p in pictures)
    assert "](https://host/us/it/blob/v1.0/docs/tables.md)" in page
    assert "](https://arxiv.org/abs/1507.06228)" in page
