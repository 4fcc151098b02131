"""What an installed package must do, from outside the repository: `python .ci/smoke.py`."""

import subprocess

import highway_keras as hk

assert "site-packages" in hk.__file__, hk.__file__
assert hk.models.create("mnist-highway-16", weights="mnist").count_params() == 38_986
assert hk.models.create("highway-a", weights="cifar10").count_params() == 236_328
assert hk.results.accuracies()["mnist-highway-16"]
said = subprocess.run(["highway-keras", "--version"], capture_output=True, text=True, check=True)
assert said.stdout.split() == ["highway-keras", hk.__version__], said.stdout
subprocess.run(["highway-keras", "list"], stdout=subprocess.DEVNULL, check=True)
print("imported from", hk.__file__)
