"""What fails after the work is done costs nothing but itself."""

import os
import subprocess
import sys

import numpy as np
import pytest

from highway_keras import analysis, models
from highway_keras.analysis import plots
from highway_keras.analysis.pictures import write_picture
from highway_keras.messages import Notice


def broken(*arguments, **options):
    raise RuntimeError("no fonts\nhere")


def test_a_failed_picture_is_a_warning(tmp_path):
    with pytest.warns(Notice, match=r"a.png could not be drawn: no fonts here$"):
        write_picture(tmp_path / "a.png", broken)


def test_an_analysis_without_a_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "plot_routing", broken)
    model = models.thin_mlp(depth=3, input_shape=(8,), classes=3)
    x, y = np.zeros((6, 8), "float32"), np.arange(6) % 3
    with pytest.warns(Notice, match=r"figure3.png could not be drawn: no fonts here$"):
        found = analysis.analyze(model, x, y, tmp_path, verbose=0)
    assert (tmp_path / "layers.csv").exists() and (tmp_path / "figure4.png").exists()
    page = found.page.read_text(encoding="utf-8")
    assert page.count("data:image/png") == 2 and "This picture could not be drawn." in page


def test_class_names_are_checked_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("highway_keras.analysis.lesioning.lesions", broken)
    model = models.thin_mlp(depth=3, input_shape=(8,), classes=3)
    for names in (list("abcd"), "abc", {"a", "b", "c"}, [0, 1, 2], 5):
        with pytest.raises(ValueError, match="`class_names`"):
            analysis.analyze(model, np.zeros((3, 8)), np.arange(3), tmp_path, class_names=names)


@pytest.mark.slow
def test_a_terminal_that_lacks_a_letter_ends_no_run(tmp_path):
    """`±` and a name in another script, where only ASCII can be printed."""
    script = "import sys; from highway_keras.cli.command import main; sys.exit(main())"
    command = "fit thin-plain-10 --dataset digits --epochs 1 --limit 40 --model-set depth=2"
    done = subprocess.run(
        [sys.executable, "-c", script, *command.split(), "--runs", "2", "--out", "läufe"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert b"saved l\\xe4ufe" in done.stdout and b"\\xb1" in done.stdout
