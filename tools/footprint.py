"""Measure the size of an installation: `python -m tools.footprint --out results/footprint.csv`.

The wheel of this clone is installed into fresh environments: the core, and with the extra `cpu`.
For each: packages, megabytes and, if there is a backend, seconds of `import keras` and of `import
highway_keras`, which imports Keras, in new processes that take turns. Measure on a quiet machine.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import venv

from benchmarks import report
from tools.render import ROOT

ENVIRONMENTS = {"core": "", "cpu": "[cpu]"}
MODULES = ("keras", "highway_keras")
IMPORT = "import time; begun = time.perf_counter(); import {}; print(time.perf_counter() - begun)"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tools.footprint", description=__doc__)
    parser.add_argument(
        "--turns", type=report.positive, default=5, help="imports of each (default: 5)"
    )
    parser.add_argument("--out", metavar="CSV", help="also write the rows to this file")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        wheel = _build(folder / "dist")
        rows = [_row(name, wheel, folder / name, options.turns) for name in ENVIRONMENTS]
    for row in rows:
        print(", ".join(f"{key} {value}" for key, value in row.items() if value != ""))
    if options.out:
        command = f"python -m tools.footprint --turns {options.turns}"
        report.save(options.out, rows, ("environment",), command)


def _build(folder):
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT]
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _row(name, wheel, folder, turns):
    python = _install(f"{wheel}{ENVIRONMENTS[name]}", folder)
    packages, size = weigh(next(folder.glob("lib/python*/site-packages")))
    row = {"environment": name, "packages": packages, "megabytes": round(size / 1e6, 1)}
    seconds = {} if name == "core" else import_seconds(python, MODULES, turns)
    row["n"] = turns if seconds else 1
    for module in MODULES:
        column = f"{module}_s"
        blank = dict.fromkeys(report.middle(column, [0]), "")
        row |= report.middle(column, seconds[module]) if seconds else blank
    return row


def _install(requirement, folder):
    """Install into a new environment, which does not even have pip; return its Python."""
    venv.create(folder)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq"]
    subprocess.run([*pip, requirement], check=True)
    return python


def weigh(site_packages):
    """Return the number of packages in a folder, and the bytes of all files."""
    packages = len(list(site_packages.glob("*.dist-info")))
    return packages, sum(f.lstat().st_size for f in site_packages.rglob("*") if not f.is_dir())


def import_seconds(python, modules, turns):
    """Return the seconds of each import by module; the modules take turns, after one of each."""
    seconds = {module: [] for module in modules}
    for _ in range(turns + 1):
        for module in modules:
            command = [str(python), "-I", "-c", IMPORT.format(module)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            seconds[module].append(float(done.stdout.split()[-1]))
    return {module: times[1:] for module, times in seconds.items()}


if __name__ == "__main__":
    main()
