"""The example of a server: picture files over the wire, and wrong ones."""

import asyncio
import contextlib
import importlib.util
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import keras
import numpy as np
import pytest
from picture_folders import as_file
from PIL import Image

if importlib.util.find_spec("kserve") is None:
    reason = "needs examples/kserve/requirements.txt, whose packages conflict with newer ones"
    pytest.skip(reason, allow_module_level=True)

from examples.kserve import ask
from highway_keras import models
from highway_keras.export import export

WEIGHTS = models.get("mnist-highway-16").weights_file("mnist")
MODEL = keras.models.load_model(WEIGHTS, compile=False)
PIXELS = np.random.default_rng(0).integers(0, 256, (5, 28, 28)).astype("uint8")
FILES = [as_file(Image.fromarray(pixels)) for pixels in PIXELS]


SERVE = pathlib.Path(__file__).parents[1] / "examples" / "kserve" / "serve.py"
NAME, PROTOCOLS = "network", ("grpc", "http")
LIMIT_S = 120


@contextlib.contextmanager
def serving(folder):
    """Serve a SavedModel; yield the addresses by protocol, then stop it, with exit code 0."""
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.create_server(("localhost", 0))) for _ in PROTOCOLS]
        grpc, http = (str(each.getsockname()[1]) for each in sockets)
    command = [sys.executable, SERVE, folder, "--model_name", NAME]
    command += ["--grpc_port", grpc, "--http_port", http]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        ready, end = f"http://localhost:{http}/v2/models/{NAME}/ready", time.monotonic() + LIMIT_S
        while True:
            assert process.poll() is None and time.monotonic() < end, "the server did not start"
            time.sleep(0.2)
            with contextlib.suppress(OSError), urllib.request.urlopen(ready):
                break
        yield {"grpc": f"localhost:{grpc}", "http": f"localhost:{http}"}
    finally:
        process.terminate()
        code = process.wait(LIMIT_S)
    assert code == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving") / "1"
    export(MODEL, folder, verify=False)
    return folder


@pytest.fixture(scope="module")
def addresses(folder):
    with serving(folder) as addresses:
        yield addresses


async def answer(addresses, protocol, files):
    return await ask.answer(f"{protocol}://{addresses[protocol]}/{NAME}", files)


LARGE = as_file(Image.new("L", (5000, 5000)))
WRONG = [
    (b"", "Element 1 is none that Pillow can read: cannot identify"),
    (FILES[0][:100], "Element 1 .* truncated"),
    (LARGE, "Element 1 .* exceeds limit of 16777216 pixels"),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_answer_is_keras_and_a_wrong_picture_an_error_of_the_client(protocol, addresses):
    for file, message in WRONG:
        with pytest.raises(Exception, match=message) as caught:
            asyncio.run(answer(addresses, protocol, [FILES[0], file]))
        told = caught.value.code().name if protocol == "grpc" else str(caught.value)
        assert ("INVALID_ARGUMENT" if protocol == "grpc" else "400 Bad Request") in told
    outputs = asyncio.run(answer(addresses, protocol, FILES))  # the server lives on
    expected = MODEL.predict(PIXELS[..., None], verbose=0)
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-5)
    assert outputs["class_id"].tolist() == expected.argmax(-1).tolist()
    names = [n.decode() if isinstance(n, bytes) else n for n in outputs["class_name"]]
    assert names == [str(n) for n in expected.argmax(-1)]


@pytest.mark.parametrize(
    "inputs",
    [
        [],
        [("encoded", [1], "FP32", [1.0])],
        [("encoded", [2], "BYTES", ["AA=="])],
        [("encoded", [1], "BYTES", ["?"])],
    ],
)
def test_a_wrong_request_is_an_error_of_the_client(inputs, addresses):
    keys = ("name", "shape", "datatype", "data")
    body = json.dumps({"inputs": [dict(zip(keys, values, strict=True)) for values in inputs]})
    url = f"http://{addresses['http']}/v2/models/{NAME}/infer"
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert caught.value.code == 400 and "`encoded`" in json.load(caught.value)["error"]
