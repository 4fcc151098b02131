"""Settings, history and state of a run agree, or it is not continued; so do those of a search."""

import json
import os
import shutil

import keras_tuner
import numpy as np
import pytest

from highway_keras import data, paper, training
from highway_keras.cli import command as cli
from highway_keras.runs.provenance import Session, sessions
from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch, run_searches

OPTIONS = {"limit": 96, "epochs": 3, "model_options": {"depth": 2}, "verbose": 0}


def fit(out, resume=True, **changes):
    return training.fit("thin-highway-10", "digits", out=out, resume=resume, **OPTIONS | changes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("whole") / "run", resume=False)


@pytest.fixture
def run(whole, tmp_path):
    """A copy of the run without what its end left."""
    folder = training.RunFolder(shutil.copytree(whole.folder.path, tmp_path / "run"))
    settings = folder.read_json()
    del settings["results"]
    folder.write_json(settings)
    return folder


def test_a_state_is_not_continued_under_other_settings(run):
    before = run.state.read_bytes()
    for _ in range(2):  # with run.json and without
        with pytest.raises(ValueError, match="activation"):
            fit(run.path, model_options={"depth": 2, "activation": "tanh"})
        assert run.state.read_bytes() == before
        run.settings.unlink(missing_ok=True)


def test_a_state_is_continued_under_its_own_settings(run, whole):
    run.settings.unlink()
    with pytest.raises(ValueError, match="resume"):
        fit(run.path, resume=False)
    assert fit(run.path).history == whole.history
    assert run.read_json()["seed"] == 0


def test_the_state_of_another_run_is_refused(run):
    known = run.read_state()
    known["settings"]["seed"] = 1
    with np.load(run.state) as state:
        arrays = dict(state)
    np.savez(run.state, **{**arrays, "run": json.dumps(known)})
    with pytest.raises(ValueError, match="seed"):
        fit(run.path)


def test_without_any_settings_nothing_is_continued(run, capsys):
    run.settings.unlink()
    run.state.unlink()
    command = "fit thin-highway-10 --dataset digits --resume --out"
    assert cli.main([*command.split(), str(run.path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(run.path) in line


def rows_of(folder):
    return folder.history.read_text().splitlines(keepends=True)


DAMAGE = {
    "a row is missing": lambda rows: [*rows[:2], *rows[3:]],
    "rows are swapped": lambda rows: [rows[0], rows[2], rows[1], rows[3]],
    "it is gone": lambda rows: [],
    "a column is missing": lambda rows: [row.partition(",")[2] for row in rows],
    "a field is huge": lambda rows: [*rows[:3], "2," + "9" * 200_000 + "\n"],
    "no text": lambda rows: ["\0\0"],
    "half a row": lambda rows: [*rows[:3], rows[3][:5]],
    "a byte is no UTF-8": lambda rows: [*rows[:2], "\udcc3" + rows[2][1:], *rows[3:]],
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_history_is_refused_once_the_run_has_ended(change, whole, tmp_path):
    folder = training.RunFolder(shutil.copytree(whole.folder.path, tmp_path / "run"))
    damage_history(folder, change)
    with pytest.raises(ValueError, match=r"history\.csv"):
        folder.read_history()


def damage_history(folder, change):
    rows = change(rows_of(folder))
    folder.history.write_text("".join(rows), encoding="utf-8", errors="surrogateescape")


@pytest.mark.parametrize("change", ["it is gone", "half a row"])
def test_the_state_brings_back_its_history(change, run, whole):
    damage_history(run, DAMAGE[change])
    again = fit(run.path)
    assert again.history == whole.history and again.best_epoch == whole.best_epoch
    assert rows_of(run) == rows_of(whole.folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("file", ["run.json", "history.csv", "state.npz", "machine.json"])
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(file, run):
    (run.path / file).unlink()
    os.mkfifo(run.path / file)
    read = {"run.json": run.read_json, "state.npz": run.read_state}
    if file == "machine.json":
        assert sessions(run) == []
        return
    with pytest.raises((ValueError, OSError), match=file):
        read.get(file, run.read_history)()


@pytest.mark.parametrize("change", [None, lambda b: b[:-3000], lambda b: b.replace(b"HDF", b"hdf")])
def test_without_its_best_network_a_run_does_not_go_on(change, run):
    before, network = rows_of(run), run.best.read_bytes()
    run.best.unlink()
    if change:
        run.best.write_bytes(change(network))
    with pytest.raises((ValueError, FileNotFoundError), match=r"best\.keras"):
        fit(run.path)
    assert rows_of(run) == before


def test_a_damaged_machine_json_costs_no_training(run):
    for content in ("", "[]", "{", '[{"hardware": 5}]', '[{"seconds": 1}]', "5", "\udcff"):
        run.machine.write_bytes(content.encode(errors="surrogateescape"))
        with Session(run):
            pass
        assert len(json.loads(run.machine.read_text())) == 1


@pytest.mark.parametrize("results", [{}, [], 5, {"test_accuracy": "high"}, None])
def test_results_without_numbers_are_not_believed(results, run):
    run.write_json({**run.read_json(), "results": results})
    with pytest.raises(ValueError, match=r"run\.json"):
        assert not run.has_ended


# Searches

SEARCH = {"depths": [2], "kinds": ["plain"], "trials": 2, "epochs": 2, "verbose": 0}
SEARCH |= {"dataset": "digits", "limit": 64}


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    out = tmp_path_factory.mktemp("search")
    run_searches(out=out, **SEARCH)
    return out


@pytest.fixture
def search(searched, tmp_path):
    return shutil.copytree(searched, tmp_path / "search") / "thin-plain-2"


def continue_(folder, **changes):
    return run_searches(out=folder.parent, resume=True, **{**SEARCH, **changes})


def test_a_search_is_continued_under_its_own_settings_only(search):
    before = json.loads((search / "run.json").read_text())
    (search / "run.json").unlink()
    for named, changes in [("seed", {"seed": 1}), ("epochs", {"epochs": 3}), ("64", {"limit": 60})]:
        with pytest.raises(ValueError, match=named):
            continue_(search, **changes)
        assert not (search / "run.json").exists()
    continue_(search)
    assert json.loads((search / "run.json").read_text()) == before


def without(key):
    def edit(path):
        content = json.loads(path.read_text())
        del content[key]
        path.write_text(json.dumps(content))

    return edit


LOSS = {
    "no oracle": ("oracle.json", lambda path: path.unlink()),
    "damaged oracle": ("oracle.json", lambda path: path.write_text("{")),
    "an empty oracle": ("oracle.json", lambda path: path.write_text("{}")),
    "only trials": ("", lambda folder: [path.unlink() for path in folder.glob("*.json")]),
    "no status": ("trial_0/trial.json", without("status")),
    "no values": ("trial_1/trial.json", without("hyperparameters")),
    "an empty trial": ("trial_0/trial.json", lambda path: path.write_text("")),
}


@pytest.mark.parametrize(("file", "lose"), LOSS.values(), ids=LOSS)
def test_a_damaged_search_is_refused_in_one_line(file, lose, search, tmp_path, capsys):
    lose(search / file)
    command = "search --depth 2 --kind plain --trials 2 --epochs 2 --dataset digits --limit 64"
    assert cli.main([*command.split(), "--resume", "--out", str(search.parent)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(search) in line
    if file.endswith("trial.json"):
        with pytest.raises(ValueError, match=r"trial\.json"):
            paper.draw_figure1(search.parent, tmp_path / "figure")
        assert not any((tmp_path / "figure").glob("*"))


@pytest.fixture
def digits():
    found = data.load("digits", limit=64)
    return found.x_train / np.float32(256), found.y_train


def tuner(directory, depth=2, **options):
    hypermodel = HighwayHyperModel(depth, input_shape=(8, 8, 1), units=4)
    return PopulationRandomSearch(hypermodel, directory=directory, **{"max_trials": 2, **options})


def test_a_tuner_of_other_settings_leaves_a_search_alone(tmp_path, digits):
    meanwhile = tuner(tmp_path)
    tuner(tmp_path).search(*digits, verbose=0)
    files = {path: path.read_bytes() for path in tmp_path.glob("**/*.json")}
    for named, changes in (("depth", {"depth": 3}), ("seed", {"seed": 5})):
        with pytest.raises(ValueError, match=named):
            tuner(tmp_path, **changes).search(*digits, verbose=0)
    with pytest.raises(ValueError, match="batch_size"):
        tuner(tmp_path).search(*digits, batch_size=32, verbose=0)
    meanwhile.search(*digits, verbose=0)  # all of whose trials another process has done
    trials = {path: content for path, content in files.items() if path.name == "trial.json"}
    assert {path: path.read_bytes() for path in trials} == trials
    longer = tuner(tmp_path, max_trials=3)
    longer.search(*digits, verbose=0)
    assert len(longer.oracle.end_order) == 3


@pytest.mark.parametrize("population", [None, 2])
def test_the_search_of_another_tuner_is_left_alone(population, tmp_path):
    hypermodel = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4)
    keras_tuner.RandomSearch(hypermodel, "loss", max_trials=2, directory=tmp_path).save()
    with pytest.raises(ValueError, match="project_name"):
        tuner(tmp_path, population=population)


# Tables of runs


@pytest.fixture
def ended(tmp_path):
    """A run of Table 1 that has ended, as far as its settings tell."""
    folder = training.RunFolder(tmp_path / "mnist-highway-16-modern" / "seed-0")
    folder.path.mkdir(parents=True)
    results = {"test_accuracy": 0.9, "test_loss": 0.3, "best_epoch": 1}
    settings = {"dataset": "mnist", "limit": None, "seed": 0, "recipe": {"epochs": 1}}
    folder.write_json({**settings, "results": results})
    return folder


def test_stray_folders_are_no_runs(ended, tmp_path):
    for name in ("seed-0.bak", "seed-", "seed-x", "seed-00"):
        shutil.copytree(ended.path, ended.path.with_name(name))
    assert len(paper.read_table("table1", tmp_path)) == 1


def test_a_row_without_its_settings_is_named_before_the_work(ended, tmp_path):
    without("dataset")(ended.settings)
    with pytest.raises(ValueError, match="dataset"):
        paper.reproduce_table("table1", runs=1, out=tmp_path)
