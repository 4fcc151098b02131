"""Generate pages of the site, and adapt the written ones; mkdocs-gen-files runs it in every build.

Pages of `docs/` are also read in the repository, so they link to `../results/`, and those of the
root to `docs/`. In the site all of them are in one folder.
"""

import contextlib
import inspect
import io
import os
import pathlib
import re
import shutil
import tempfile

import mkdocs_gen_files
import numpy as np
from PIL import Image

import highway_keras
from highway_keras import data, live, models, results, training
from highway_keras.cli.command import parser

ROOT = pathlib.Path(__file__).parents[2]
FROM_ROOT = ("CHANGELOG", "CODE_OF_CONDUCT", "CONTRIBUTING", "SECURITY", "results/README")
BESIDE = ("models", "results", "tuning")  # folders beside the package, in which they install


def add(name, text):
    with mkdocs_gen_files.open(name, "w", encoding="utf-8") as file:
        file.write(text)


# Written pages, with their links as the site has them.

docs = ROOT / "docs"
written = {path.relative_to(docs).as_posix(): path for path in docs.rglob("*.md")}
written |= {f"{name}.md": ROOT / f"{name}.md" for name in FROM_ROOT}
written["LICENSE"] = ROOT / "LICENSE"
networks = "|".join(map(re.escape, models.list_models()))
public = {name: getattr(highway_keras, name) for name in highway_keras.__all__}
rooms = {name: module for name, module in public.items() if inspect.ismodule(module)}
names = [
    f"{room}.{name}"
    for room, module in rooms.items()
    for name in getattr(module, "__all__", ())
    if getattr(getattr(module, name), "__name__", "") == name  # no constant and no second name
]
api = {name.removeprefix("layers."): f"highway_keras.{name}" for name in names}
mentioned = re.compile(rf"(?<!\[)`({'|'.join(map(re.escape, api))})`")
for name, path in written.items():
    text = path.read_text(encoding="utf-8")
    up = "../" * name.count("/")
    text = text.replace(f"]({up}../", f"]({up}").replace("](docs/", "](")
    if name == "zoo/index.md":
        text = re.sub(rf"^\| `({networks})`", r"| [`\1`](\1.md)", text, flags=re.MULTILINE)
    add(name, mentioned.sub(lambda m: f"[{m[0]}][{api[m[1]]}]", text))
for path in (ROOT / "results").glob("*.csv"):
    add(f"results/{path.name}", path.read_text(encoding="utf-8"))
for path in docs.rglob("*.ipynb"):  # their links are not mkdocs's, so they lead to pages as built
    text = re.sub(r"\]\(([\w/.-]+)\.(md|ipynb)([)#])", r"](\1.html\3", path.read_text("utf-8"))
    add(path.relative_to(docs).as_posix(), text)

# A card for each network: its size, the paper's claims, our runs, and its trained weights.

ours = results.accuracies()
nav = mkdocs_gen_files.Nav()
nav["Networks"] = "index.md"
for name in models.list_models():
    card = models.get(name)
    arguments = ", ".join(f"{key}={value!r}" for key, value in card.arguments.items())
    factory = card.factory.__name__
    factory = f"[`models.{factory}({arguments})`][highway_keras.models.{factory}]"
    facts = {
        "Built by": factory,
        "Layers": card.layers,
        "Parameters": f"{card.parameters:,}",
        "Multiplications": f"{card.multiplications:,} an image",
        "Images": f"{' x '.join(map(str, card.input_shape))}, {card.classes} classes",
        "Trained on": f"`{card.dataset}`, by the recipe `{card.recipe}` unless told otherwise",
        "In the paper": card.table or "not there: a twin to compare with",
        "The paper's accuracy, %": card.paper,
        "Ours, %": ours.get(name, "not measured yet"),
        "Origin": card.origin,
    }
    page = [f"# {name}\n\n| | |\n|---|---|"]
    page += [f"| {key} | {value} |" for key, value in facts.items() if value]
    page.append(f"""
## Build and train

```python
from highway_keras import models, training

model = models.create("{name}")  # uncompiled
training.fit("{name}", out="runs/{name}")  # {training.get_recipe(card.recipe).epochs} epochs
```
""")
    for dataset in card.weights:
        text = card.weights_file(dataset).with_suffix(".md").read_text(encoding="utf-8")
        title, text = text.split("\n", 1)
        page.append(f"## Weights: {title.rpartition(', ')[2]}\n{text}")
    add(f"zoo/{name}.md", "\n".join(page))
    nav[name] = f"{name}.md"
add("zoo/SUMMARY.md", "".join(nav.build_literate_nav()))

# The API: a page for each public module, which mkdocstrings fills from the source as it installs.

source = ROOT / "tools" / "docs" / "highway_keras"  # properdocs.yml names the folder
shutil.rmtree(source, ignore_errors=True)
source.mkdir()
for path in (*(ROOT / "highway_keras").iterdir(), *(ROOT / room for room in BESIDE)):
    (source / path.name).symlink_to(path)
nav = mkdocs_gen_files.Nav()
nav["API"] = "index.md"
rows = ["# API\n", "| module | what it holds |", "|---|---|"]
for room, module in rooms.items():
    first, _, _ = module.__doc__.partition("\n\n")
    rows.append(f"| [`highway_keras.{room}`]({room}.md) | {' '.join(first.split())} |")
    options = "    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
    add(f"api/{room}.md", f"# highway_keras.{room}\n\n::: highway_keras.{room}\n{options}")
    nav[f"highway_keras.{room}"] = f"{room}.md"
nav["Command"] = "command.md"
add("api/index.md", "\n".join([*rows, "\n[The command](command.md) has a page of its own."]))
add("api/SUMMARY.md", "".join(nav.build_literate_nav()))


def help_of(*command):
    """Return the help of a command, then that of the commands which it lists, as Markdown."""
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(SystemExit):
        parser().parse_args([*command, "--help"])
    text = text.getvalue()
    title = f"## `highway-keras {' '.join(command)}`" if command else "# The command"
    names = re.findall(r"^    ([a-z][\w-]*)(?= |$)", text, re.MULTILINE)
    below = "\n".join(help_of(*command, name) for name in names)
    return f"{title}\n\n```text\n{text}```\n\n{below}"


os.environ["COLUMNS"] = "80"  # the width of argparse's lines
add("api/command.md", help_of())

# Live pages: networks with their trained weights, to draw on. Their examples are the bundled test
# digits in MNIST's format, in a box of 20 pixels centered in 28, so the site needs no download.

digits = data.load("digits")
images = [Image.fromarray(image[..., 0]) for image in digits.x_test]
large = np.stack([image.resize((20, 20), Image.Resampling.BICUBIC) for image in images])
large = np.pad(large, [(0, 0), (4, 4), (4, 4)])[..., None]
with tempfile.TemporaryDirectory() as folder:
    for name in ("mnist-highway-16", "thin-highway-50"):
        path = pathlib.Path(folder, f"{name}.html")
        trained = models.load(models.get(name).weights_file("mnist"))
        title = f"{name}, trained on MNIST"
        live.live_page(trained.model, large, digits.y_test, path, trained.class_names, title)
        add(f"live/{name}.html", path.read_text(encoding="utf-8"))
