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

ENVIRONMENTS = {"core": "", "cpu": "[cpu]"}
MODULES = ("keras", "highway_keras")
IMPORT = "import time; begun = time.perf_counter(); import {}; print(time.perf_counter() - begun)"


def main(arguments=None):
    options, found = rows.parser("tools.footprint", __doc__, turns=5).parse_args(arguments), []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        _run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, rows.ROOT)
        (wheel,) = folder.glob("*.whl")
        for name, extra in ENVIRONMENTS.items():
            venv.create(folder / name)  # which does not even have pip
            python = folder / name / "bin" / "python"
            _run(
                sys.executable, "-m", "pip", "--python", python, "install", "-q", f"{wheel}{extra}"
            )
            (installed,) = (folder / name).glob("lib/python*/site-packages")
            size = sum(f.lstat().st_size for f in installed.rglob("*") if not f.is_dir())
            row = {"environment": name, "packages": len(list(installed.glob("*.dist-info")))}
            row |= {"megabytes": round(size / 1e6, 1), "n": options.turns if extra else 1}
            row["versions"] = rows.versions(installed)
            count = options.turns + 1 if extra else 0  # the core has no backend to import
            turns = [
                [float(_run(python, "-I", "-c", IMPORT.format(module))) for module in MODULES]
                for _ in range(count)
            ][1:] or [[""] * len(MODULES)]
            for module, seconds in zip(MODULES, zip(*turns, strict=True), strict=True):
                row |= rows.middle(f"{module}_s", seconds)
            found.append(row)
    rows.record(found, ("environment",), options.out, "tools.footprint", turns=options.turns)


def _run(*command):
    done = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)
    return done.stdout


if __name__ == "__main__":
    main()
