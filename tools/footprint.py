"""Measure the size of an installation: `python -m tools.footprint --out results/footprint.csv`.

This clone is installed into fresh environments: the core, and with the extra `cpu`. For each:
packages, megabytes and, if there is a backend, seconds of `import keras` and of `import
highway_keras`, which imports Keras, in new processes that take turns. Measure on a quiet machine.
"""

import pathlib
import subprocess
import sys
import tempfile
import venv

from benchmarks import measurements

ENVIRONMENTS = {"core": "", "cpu": "[cpu]"}
MODULES = ("keras", "highway_keras")
IMPORT = "import time; begun = time.perf_counter(); import {}; print(time.perf_counter() - begun)"


def main(arguments=None):
    options = measurements.parser("tools.footprint", __doc__, turns=5).parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for name, extra in ENVIRONMENTS.items():
            environment = pathlib.Path(folder, name)
            venv.create(environment)  # which does not even have pip
            python = environment / "bin" / "python"
            pip = [sys.executable, "-m", "pip", "--python", python]
            subprocess.run([*pip, "install", "-q", f"{measurements.ROOT}{extra}"], check=True)
            (installed,) = environment.glob("lib/python*/site-packages")
            size = sum(f.lstat().st_size for f in installed.rglob("*") if not f.is_dir())
            row = {"environment": name, "packages": len(list(installed.glob("*.dist-info")))}
            row |= {"megabytes": round(size / 1e6, 1), "n": options.turns if extra else 1}
            row["versions"] = measurements.versions(installed)
            if extra:  # the core has no backend to import
                turns = [[seconds(python, m) for m in MODULES] for _ in range(1 + options.turns)]
                # Without the first turn, in which the files come from the disk.
                for module, took in zip(MODULES, zip(*turns[1:], strict=True), strict=True):
                    row |= measurements.middle(f"{module}_s", took)
            measurements.record(
                [row], ["environment"], options.out, "tools.footprint", turns=options.turns
            )


def seconds(python, module):
    """Return how long an interpreter takes to import a module."""
    return float(subprocess.check_output([python, "-I", "-c", IMPORT.format(module)]))


if __name__ == "__main__":
    main()
