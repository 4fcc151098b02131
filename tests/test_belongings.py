"""Settings, history and state of a run belong together; so do those of a search."""

import csv
import json
import shutil

import h5py
import keras_tuner
import numpy as np
import pytest

from highway_keras import data, paper, training
from highway_keras.cli import command as cli
from highway_keras.runs.folder import BELONGS_TO
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


OTHERS = {
    "seed": ({"seed": 1}, "seed: 0 → 1"),
    "rate": ({"learning_rate": 0.3}, "learning_rate: .* → 0.3"),
    "network": ({"model_options": {"depth": 2, "activation": "tanh"}}, "activation"),
    "images": ({"limit": 90}, "limit: 96 → 90"),
}


@pytest.mark.parametrize(("changes", "message"), OTHERS.values(), ids=OTHERS)
def test_a_state_is_not_continued_under_other_settings(changes, message, run):
    run.settings.unlink()
    before = run.state.read_bytes()
    with pytest.raises(ValueError, match=f"{message}.* name another folder"):
        fit(run.path, **changes)
    assert run.state.read_bytes() == before and not run.settings.exists()


def test_a_state_is_continued_under_its_own_settings(run, whole):
    run.settings.unlink()
    assert fit(run.path).history == whole.history
    assert run.read_json()["seed"] == 0


def test_without_resume_a_run_without_its_settings_is_a_run_all_the_same(run):
    run.settings.unlink()
    with pytest.raises(ValueError, match="already holds a run"):
        fit(run.path, resume=False)


def test_the_state_of_another_run_is_refused(run, tmp_path):
    other = fit(tmp_path / "other", resume=False, seed=1)
    shutil.copy(other.folder.state, run.state)
    with pytest.raises(ValueError, match=r"seed: 1 → 0"):
        fit(run.path)


def forget(state):
    """Make it a state of version 0.1.0."""
    with h5py.File(state, "r+") as file:
        del file[BELONGS_TO]


@pytest.mark.parametrize("also", ["state.weights.h5", None])
def test_without_any_settings_nothing_is_continued(also, run, capsys):
    run.settings.unlink()
    forget(run.state)
    if also:
        (run.path / also).unlink()
    command = "fit thin-highway-10 --dataset digits --resume --out"
    assert cli.main([*command.split(), str(run.path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "holds a run whose settings are gone" in line and "delete the folder" in line


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


def damage_history(folder, change):
    rows = change(rows_of(folder))
    folder.history.write_text("".join(rows), encoding="utf-8", errors="surrogateescape")


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_the_state_brings_back_its_history(change, run, whole):
    damage_history(run, change)
    again = fit(run.path)
    assert again.history == whole.history and again.best_epoch == whole.best_epoch
    assert rows_of(run) == rows_of(whole.folder)


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_beside_an_old_state_a_damaged_history_is_refused(change, run):
    forget(run.state)
    damage_history(run, change)
    with pytest.raises(ValueError, match=r"history.csv cannot be read, or lacks epochs. Delete"):
        fit(run.path)


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_the_damaged_history_of_a_run_that_has_ended_is_not_read(change, whole, tmp_path):
    folder = training.RunFolder(shutil.copytree(whole.folder.path, tmp_path / "run"))
    damage_history(folder, change)
    with pytest.raises(ValueError, match=r"history.csv cannot be read, or lacks epochs"):
        folder.read_history()


def test_without_its_best_network_a_run_does_not_go_on(run):
    run.best.unlink()
    with pytest.raises(FileNotFoundError, match=r"best network so far is gone: .*best.keras"):
        fit(run.path)


@pytest.mark.parametrize("change", [lambda b: b[:-3000], lambda b: b.replace(b"HDF", b"hdf"), len])
def test_with_a_damaged_best_network_a_run_does_not_go_on(change, run):
    before = rows_of(run)
    run.best.write_bytes(bytes(change(run.best.read_bytes())))
    with pytest.raises(ValueError, match=r"best.keras cannot be loaded .* Bring it back, or"):
        fit(run.path)
    assert rows_of(run) == before


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '[{"hardware": 5}]', '[{"seconds": 1}]', "5", "\udcff"]
)
def test_a_damaged_machine_json_costs_no_training(content, run):
    path = run.path / "machine.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    assert fit(run.path).folder.has_ended
    assert len(json.loads(path.read_text())) == 1


@pytest.mark.parametrize("results", [{}, [], 5, {"test_accuracy": "high"}, None])
def test_results_without_numbers_are_not_believed(results, run):
    run.write_json({**run.read_json(), "results": results})
    with pytest.raises(ValueError, match=r"run.json cannot be read"):
        assert not run.has_ended


@pytest.mark.parametrize("steps", [5, None, [1, 2], "gcn"])
def test_preprocessing_that_is_no_list_of_names_is_not_believed(steps, run):
    """By `--weights` such a file told nothing, or nonsense, of what the network expects."""
    settings = run.read_json()
    run.write_json({**settings, "recipe": {**settings["recipe"], "preprocessing": steps}})
    with pytest.raises(ValueError, match=r"run.json cannot be read"):
        run.read_json()


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "seed: 0 → 1"),
        ({"epochs": 3}, "epochs: 2 → 3"),
        ({"limit": 60}, "labels: '64 "),
    ],
)
def test_a_search_is_not_continued_under_other_settings(changes, message, search):
    (search / "run.json").unlink()
    with pytest.raises(ValueError, match=f"{message}.* name another folder"):
        continue_(search, **changes)
    assert not (search / "run.json").exists()


def test_a_search_is_continued_under_its_own_settings(search):
    before = json.loads((search / "run.json").read_text())
    (search / "run.json").unlink()
    continue_(search)
    assert json.loads((search / "run.json").read_text()) == before


LOSS = {
    "no oracle": lambda folder: (folder / "oracle.json").unlink(),
    "damaged oracle": lambda folder: (folder / "oracle.json").write_text("{"),
    "an empty oracle": lambda folder: (folder / "oracle.json").write_text("{}"),
    "only trials": lambda folder: [path.unlink() for path in folder.glob("*.json")],
    "no status": lambda folder: edit(folder / "trial_0/trial.json", "status"),
    "no values": lambda folder: edit(folder / "trial_1/trial.json", "hyperparameters"),
    "an empty trial": lambda folder: (folder / "trial_0/trial.json").write_text(""),
}


def edit(path, key):
    content = json.loads(path.read_text())
    del content[key]
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("lose", LOSS.values(), ids=LOSS)
def test_a_damaged_search_is_refused_in_one_line(lose, search, capsys):
    lose(search)
    command = "search --depth 2 --kind plain --trials 2 --epochs 2 --dataset digits --limit 64"
    assert cli.main([*command.split(), "--resume", "--out", str(search.parent)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(search) in line and "delete the folder" in line


@pytest.mark.parametrize("name", ["no status", "no values", "an empty trial"])
def test_figure_1_names_a_damaged_trial(name, search, tmp_path):
    LOSS[name](search)
    with pytest.raises(ValueError, match=r"trial.json cannot be read. Bring it back"):
        paper.draw_figure1(search.parent, tmp_path / "figure")
    assert not (tmp_path / "figure").exists()


def test_a_tuner_of_other_settings_leaves_a_search_alone(tmp_path):
    digits = data.load("digits", limit=64)
    x, y = digits.x_train / np.float32(256), digits.y_train

    def tuner(depth=2, seed=0):
        hypermodel = HighwayHyperModel(depth, input_shape=(8, 8, 1), units=4)
        return PopulationRandomSearch(hypermodel, max_trials=2, seed=seed, directory=tmp_path)

    tuner().search(x, y, verbose=0)
    files = {path: path.read_bytes() for path in tmp_path.glob("**/*.json")}
    for changes, message in (({"depth": 3}, "depth: 2 → 3"), ({"seed": 5}, "seed: 0 → 5")):
        with pytest.raises(ValueError, match=f"settings differ .*{message}"):
            tuner(**changes).search(x, y, verbose=0)
    with pytest.raises(ValueError, match="batch_size: 128 → 32"):
        tuner().search(x, y, batch_size=32, verbose=0)
    assert {path: path.read_bytes() for path in tmp_path.glob("**/*.json")} == files
    more = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4)
    longer = PopulationRandomSearch(more, max_trials=3, directory=tmp_path)
    longer.search(x, y, verbose=0)
    assert len(longer.oracle.end_order) == 3


@pytest.mark.parametrize("population", [None, 2])
def test_the_search_of_another_tuner_is_left_alone(population, tmp_path):
    hypermodel = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4)
    keras_tuner.RandomSearch(hypermodel, "loss", max_trials=2, directory=tmp_path).save()
    with pytest.raises(ValueError, match=r"project_name='untitled_project'; another tuner made"):
        PopulationRandomSearch(hypermodel, population=population, directory=tmp_path)


def test_a_search_goes_on_from_what_another_process_did_meanwhile(tmp_path):
    digits = data.load("digits", limit=64)
    x, y = digits.x_train / np.float32(256), digits.y_train
    hypermodel = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4)
    options = {"max_trials": 3, "directory": tmp_path}
    first, second = (PopulationRandomSearch(hypermodel, **options) for _ in range(2))
    first.search(x, y, verbose=0)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("**/trial.json")}
    second.search(x, y, verbose=0)
    assert {path: path.stat().st_mtime_ns for path in files} == files


def test_stray_folders_are_no_runs(tmp_path):
    folder = training.RunFolder(tmp_path / "mnist-highway-16-modern" / "seed-0")
    folder.path.mkdir(parents=True)
    results = {"test_accuracy": 0.9, "test_loss": 0.3, "best_epoch": 1}
    settings = {"dataset": "mnist", "limit": None, "seed": 0, "recipe": {"epochs": 1}}
    folder.write_json({**settings, "results": results})
    for name in ("seed-0.bak", "seed-", "seed-x", "seed-00"):
        shutil.copytree(folder.path, folder.path.with_name(name))
    assert len(paper.read_table("table1", tmp_path)) == 1


def test_a_row_without_its_settings_is_named_before_the_work(tmp_path, monkeypatch):
    folder = training.RunFolder(tmp_path / "mnist-highway-16-modern" / "seed-7")
    folder.path.mkdir(parents=True)
    results = {"test_accuracy": 0.9, "test_loss": 0.3, "best_epoch": 1}
    folder.write_json({"results": results, "recipe": {"epochs": 1}})
    monkeypatch.setattr("highway_keras.training.trainer.fit", None)
    with pytest.raises(ValueError, match=r"seed-7/run.json lacks 'dataset'"):
        paper.reproduce_table("table1", runs=1, out=tmp_path)


def test_history_is_what_keras_writes(whole):
    """The state's copy of the history is that of the file, to the last digit."""
    with h5py.File(whole.folder.state) as file:
        kept = json.loads(file[BELONGS_TO][()])["history"]
    with whole.folder.history.open(newline="") as file:
        assert kept == list(csv.DictReader(file))


def test_a_changed_number_of_the_state_is_noticed(run):
    with h5py.File(run.state, "r+") as file:
        names = []
        file.visit(names.append)
        name = next(n for n in names if isinstance(file[n], h5py.Dataset) and file[n].size > 9)
        file[name][0] = 0.5
    with pytest.raises(ValueError, match=r"saved state .* cannot be read. Delete the folder"):
        fit(run.path)
