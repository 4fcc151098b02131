"""What PyTorch cannot do."""

import keras
import pytest

from highway_keras import models
from highway_keras.cli import command as cli

pytestmark = pytest.mark.skipif(keras.backend.backend() != "torch", reason="about PyTorch")


@pytest.mark.parametrize(
    "command",
    [
        "fit thin-highway-10 --dataset digits --distribute",
        "search --dataset digits --depth 2 --kind plain",
        f"export {models.get('thin-highway-10').weights_file('mnist')} --out exported",
    ],
)
def test_what_needs_another_backend_says_so_and_leaves_nothing(
    command, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(command.split()) == 2
    assert "TensorFlow" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
