"""The documentation site: what makes its pages, what its guides claim, and what checks it."""

import importlib
import inspect
import pathlib
import re
import textwrap

import keras
import pytest

import highway_keras
from highway_keras import models, results
from highway_keras.cli import command
from tools.docs import api, google_style, links, live, notebooks, zoo

ROOT = pathlib.Path(__file__).parents[1]
MODULES = {"ops": ["highway"], "initializers": ["TransformBias"], "optimizers": ["CaffeSGD"]}
GUIDES = ("index", "own-network", "transfer", "search", "zoo/index", "../README")


@pytest.mark.parametrize("guide", GUIDES)
def test_the_code_of_a_guide_runs(guide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(models.registry, "_CARDS", dict(models.registry._CARDS))
    text = (ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, f"{guide}.md", "exec"), names)
    if guide == "transfer":
        assert names["accuracy"] > 0.8  # the features of MNIST's digits are worth something here


def test_every_network_has_a_card_with_its_numbers():
    pages = zoo.pages()
    index = zoo.links_to_cards((ROOT / "docs/zoo/index.md").read_text(encoding="utf-8"))
    for name in models.list_models():
        card, page = models.get(name), pages[f"zoo/{name}.md"]
        assert page.startswith(f"# {name}\n")
        assert f"| {card.parameters:,} |" in page
        paper = re.findall(r"^\| The paper's accuracy, % \| (.*) \|$", page, re.MULTILINE)
        assert paper == ([card.paper] if card.paper else [])
        assert f"| [`{name}`]({name}.md) |" in index
        assert page.count("SHA-256") == len(card.weights)
    measured = results.accuracies()["mnist-highway-16"]
    assert f"| `modern` | float32 | 30 | {measured} |" in pages["zoo/mnist-highway-16.md"]


def test_every_public_class_and_function_has_its_place():
    pages = api.pages()
    public = [importlib.import_module(f"highway_keras.{room}") for room in api.ROOMS]
    named = (getattr(highway_keras, name) for name in highway_keras.__all__)
    assert set(public) == {thing for thing in named if inspect.ismodule(thing)}
    for room, module in zip(api.ROOMS, public, strict=True):
        for name in getattr(module, "__all__", MODULES.get(room)):
            thing = getattr(module, name)
            if name != "ConvHighway" and (inspect.isclass(thing) or inspect.isfunction(thing)):
                assert f"::: highway_keras.{room}.{name}\n" in pages[f"api/{room}.md"]
    assert "ConvHighway\n" not in pages["api/layers.md"]  # another name of ConvHighway2D
    (commands,) = [a.choices for a in command.parser()._actions if a.metavar == "COMMAND"]
    found = re.findall(r"^## `highway-keras (\w+)`$", pages["api/command.md"], re.MULTILINE)
    assert found == [*commands]
    assert "--model-set" in pages["api/command.md"]


def test_examples_look_as_mnist_does_to_a_network():
    images, labels = live.examples()
    assert images.shape == (359, 28, 28, 1) and images.dtype == "uint8"
    file = models.get("mnist-highway-16").weights_file("mnist")
    network = keras.models.load_model(file, compile=False)
    found = network.predict(images, verbose=0).argmax(-1)
    assert (found == labels).mean() > 0.9


def test_source_is_laid_out_as_it_installs(tmp_path):
    api.link_source(ROOT, tmp_path)
    for module in ("layers/highway.py", "models/registry.py", "tuning/tuner.py"):
        assert (tmp_path / "highway_keras" / module).is_file()


def test_every_notebook_has_its_page():
    pages = notebooks.pages()
    page = pages["notebooks/first-layer.md"]
    assert page.startswith(
        "# The first layer\n\n[Download this notebook](first-layer.ipynb){ download }"
    )
    assert "from highway_keras import Highway, HighwayStack, data\n" in page
    assert "](figure1.md)" in page and ".ipynb)" not in page.partition("{ download }")[2]
    assert "```{ .text .printed }\nhighway: 258,760 parameters" in page
    (picture,) = re.findall(r"!\[What the cell draws\]\((.*)\)", page)
    assert pages[f"notebooks/{picture}"].startswith(b"\x89PNG")
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    index = (ROOT / "docs/notebooks/index.md").read_text(encoding="utf-8")
    for name in pages:
        if name.endswith(".md"):
            assert f": {name}\n" in navigation
            assert f"]({pathlib.Path(name).stem}.ipynb)" in index


@pytest.mark.parametrize("address", ["https://github.com/us/it", "https://github.com/us/it/"])
def test_a_notebook_has_a_badge_where_the_repository_has_an_address(address):
    page = notebooks.page("# A\n\nb", "a.ipynb", address)
    place = "https://mybinder.org/v2/gh/us/it/HEAD?labpath=docs%2Fnotebooks%2Fa.ipynb"
    assert f"]({place}) [Download this notebook](a.ipynb)" in page
    assert "mybinder" not in notebooks.page("# A\n\nb", "a.ipynb", "https://host/us/it")


DOCSTRING = """Do it.

Args:
    one, two,
        three: Numbers.

Example:

>>> a = 1
>>> a
1

>>> for _ in "b":
...     print(2)
2

Reference:
    A paper.
"""


def test_docstrings_become_googles():
    text = google_style.in_google_style(DOCSTRING)
    assert "    one, two, three: Numbers.\n" in text
    doctests = DOCSTRING.partition("Example:\n\n")[2].partition("\nReference:")[0]
    assert f"Examples:\n{textwrap.indent(doctests, '    ')}\nReference:" in text
    assert text.endswith("\nReference:\n    A paper.\n")


@pytest.fixture
def site(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text('<h1 id="top">A</h1><a href="sub/b.html#there">b</a>')
    (tmp_path / "sub/b.html").write_text(
        '<p id="there"></p><a href="../">up</a><a href="#there">here</a><a href="/index.html#top">'
        '<a href="https://example.org/gone">elsewhere</a>'
    )
    return tmp_path


def test_links_that_lead_somewhere(site, capsys):
    assert links.check(site) == ([], 1)
    assert links.main([str(site)]) == 0
    assert "2 pages" in capsys.readouterr().out


@pytest.mark.parametrize("link", ["gone.html", "b.html#gone", "#gone", "../../out.html", "a.png"])
def test_a_broken_link_is_found(site, link, capsys):
    with (site / "sub/b.html").open("a") as page:
        page.write(f'<img src="{link}">')
    assert links.check(site)[0] == [("sub/b.html", link)]
    assert links.main([str(site)]) == 1
    assert f"{link} leads nowhere" in capsys.readouterr().out


def test_a_folder_without_pages_is_not_a_site(tmp_path):
    assert links.main([str(tmp_path)]) == 1
