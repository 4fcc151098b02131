"""Figures 2, 3 and 4 from their search to their pictures, in small."""

import json

import keras
import pytest

from highway_keras import paper, tuning
from highway_keras.cli.command import main
from highway_keras.paper import section4
from highway_keras.paper.finals import best_final

pytestmark = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="the population search needs TensorFlow or JAX"
)


@pytest.mark.slow
def test_the_best_tanh_network_of_a_search_is_trained_and_looked_into(tmp_path, monkeypatch):
    monkeypatch.setattr(section4, "DATASETS", ("digits",))
    monkeypatch.setattr(section4, "DEPTH", 10)
    sizes = {"trials": 3, "search_epochs": 1, "limit": 500, "verbose": 0}
    sizes |= {"candidates": 1, "candidate_epochs": 1, "epochs": 2}
    found = paper.reproduce_section4("digits", out=tmp_path, **sizes)
    trials = sorted((tmp_path / "searches" / "thin-highway-10").glob("trial_*/trial.json"))
    values = [json.loads(path.read_text())["hyperparameters"]["values"] for path in trials]
    assert [value["activation"] for value in values] == ["tanh"] * 3
    final = best_final(tmp_path / "finals" / "thin-highway-10").read_json()
    assert final["model_options"]["activation"] == "tanh" and final["recipe"]["epochs"] == 2
    for figure in ("figure2", "figure3", "figure4"):
        assert found.page.with_name(f"{figure}.png").stat().st_size > 0
    again = paper.reproduce_section4("digits", out=tmp_path, **sizes)
    assert again.needed == found.needed


def test_the_datasets_are_the_papers(capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "figure3", "--dataset", "cifar10"])
    assert "choose from" in capsys.readouterr().err
    with pytest.raises(ValueError, match="`dataset` must be one of 'mnist', 'cifar100'"):
        paper.reproduce_section4("cifar10")


NUMBERS = ("trials", "search_epochs", "candidates", "candidate_epochs", "epochs")


@pytest.mark.parametrize("name", NUMBERS)
def test_a_mistake_is_found_before_the_search(name, tmp_path, monkeypatch):
    monkeypatch.setattr(section4, "run_searches", None)  # which would fail in another way
    with pytest.raises(ValueError, match=f"`{name}` must be a positive integer. .* {name}=0"):
        paper.reproduce_section4("mnist", out=tmp_path, **{name: 0})


@pytest.mark.parametrize("name", NUMBERS[2:])
def test_a_mistake_is_found_before_the_candidates_are_trained(name, tmp_path):
    with pytest.raises(ValueError, match=f"`{name}` must be a positive integer. .* {name}=0"):
        paper.run_finals(tmp_path, tmp_path / "finals", **{name: 0})


@pytest.mark.parametrize("activations", [(), "gelu", ["gelu"], ["relu", "gelu"]])
def test_activations_to_draw_from(activations):
    with pytest.raises(ValueError, match="`activations` must be"):
        tuning.HighwayHyperModel(10, activations=activations)


def test_a_search_is_not_continued_with_other_activations(tmp_path):
    search = {"trials": 1, "epochs": 1, "dataset": "digits", "limit": 256, "verbose": 0}
    tuning.run_searches([2], ["highway"], out=tmp_path, activations=["tanh"], **search)
    with pytest.raises(ValueError, match="activations"):
        tuning.run_searches([2], ["highway"], out=tmp_path, resume=True, **search)
