"""Measure the size of an installation: `python -m tools.footprint --out results/footprint.csv`.

The wheel of this clone is installed into fresh environments: the core, and with the extra `cpu`.
For each: packages, megabytes and, if there is a backend, seconds of `import keras` and of `import
highway_keras`, which imports Keras, in new processes that take turns. Measure on a quiet machine.
"""

import pathlib
import subprocess
import sys
import tempfile
import venv

from benchmarks import rows

ROOT = pathlib.Path(__file__).parents[1]
ENVIRONMENTS = {"core": "", "cpu": "[cpu]"}
MODULES = ("keras", "highway_keras")
IMPORT = "import time; begun = time.perf_counter(); import {}; print(time.perf_counter() - begun)"


def main(arguments=None):
    options = rows.parser("tools.footprint", __doc__, turns=5).parse_args(arguments)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        _run("-m", "build", "--wheel", "--outdir", folder, ROOT)
        (wheel,) = folder.glob("*.whl")
        for name, extra in ENVIRONMENTS.items():
            venv.create(folder / name)  # which does not even have pip
            python = folder / name / "bin" / "python"
            _run("-m", "pip", "--python", python, "install", "-q", f"{wheel}{extra}")
            packages, size = weigh(next((folder / name).glob("lib/python*/site-packages")))
            turns = options.turns if extra else 0  # the core has no backend to import
            row = {"environment": name, "packages": packages, "megabytes": round(size / 1e6, 1)}
            row["n"] = turns or 1
            for module, seconds in import_seconds(python, MODULES, turns).items():
                row |= rows.middle(f"{module}_s", seconds or [""])
            found.append(row)
    rows.record(found, ("environment",), options.out, "tools.footprint", turns=options.turns)


def _run(*command):
    command = [sys.executable, *map(str, command)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def weigh(site_packages):
    """Return the number of packages in a folder, and the bytes of all files."""
    packages = len(list(site_packages.glob("*.dist-info")))
    return packages, sum(f.lstat().st_size for f in site_packages.rglob("*") if not f.is_dir())


def import_seconds(python, modules, turns):
    """Return the seconds of each import by module; the modules take turns, after one of each."""
    seconds = {module: [] for module in modules}
    for _ in range(turns + 1 if turns else 0):
        for module in modules:
            command = [str(python), "-I", "-c", IMPORT.format(module)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            seconds[module].append(float(done.stdout.split()[-1]))
    return {module: times[1:] for module, times in seconds.items()}


if __name__ == "__main__":
    main()
