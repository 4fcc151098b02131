"""The example of a server: picture files over the wire, and wrong ones."""

import asyncio
import base64
import contextlib
import importlib.util
import json
import pathlib
import re
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

from kserve import InferenceGRPCClient, InferInput, InferRequest

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


def over_http(address, inputs):
    """Return the answer's outputs, lists by name; a refusal is an `HTTPError`."""
    body = json.dumps({"inputs": inputs}).encode()
    url = f"http://{address}/v2/models/{NAME}/infer"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return {output["name"]: output["data"] for output in json.load(answer)["outputs"]}


def in_base64(files):
    data = [base64.b64encode(file).decode() for file in files]
    return [{"name": "encoded", "shape": [len(files)], "datatype": "BYTES", "data": data}]


async def over_grpc(address, files):
    pictures = InferInput("encoded", [len(files)], "BYTES")
    # "object": an array of bytes would cut zeros from the end of a file.
    pictures.set_data_from_numpy(np.array(files, "object"))
    async with InferenceGRPCClient(address, retries=0) as client:
        answer = await client.infer(InferRequest(NAME, [pictures]))
    return {output.name: output.as_numpy() for output in answer.outputs}


def test_the_answer_is_that_of_keras(addresses):
    expected = MODEL.predict(PIXELS[..., None], verbose=0)
    classes = expected.argmax(-1)
    outputs = over_http(addresses["http"], in_base64(FILES))
    np.testing.assert_allclose(np.reshape(outputs["probabilities"], (5, 10)), expected, atol=1e-5)
    assert outputs["class_id"] == classes.tolist()
    assert outputs["class_name"] == [str(n) for n in classes]
    outputs = asyncio.run(over_grpc(addresses["grpc"], FILES))
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-5)


LARGE = as_file(Image.new("L", (5000, 5000)))
KEYS = ("name", "shape", "datatype", "data")
NUMBERS = dict(zip(KEYS, ("encoded", [1], "FP32", [1.0]), strict=True))
NO_BASE64 = dict(zip(KEYS, ("encoded", [1], "BYTES", ["?"]), strict=True))
TOO_FEW = dict(zip(KEYS, ("encoded", [2], "BYTES", ["AA=="]), strict=True))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (in_base64([FILES[0], b""]), "Element 1 is none that Pillow can read: cannot identify"),
        (in_base64([FILES[0], FILES[0][:100]]), "Element 1 .* truncated"),
        (in_base64([FILES[0], LARGE]), "Element 1 .* exceeds limit of 16777216 pixels"),
        ([], "`encoded`"),
        ([NUMBERS], "`encoded`"),
        ([NO_BASE64], "`encoded`"),
        ([TOO_FEW], "`encoded`"),
    ],
    ids=["empty", "truncated", "large", "nothing", "numbers", "no base64", "too few"],
)
def test_a_wrong_request_is_an_error_of_the_client(inputs, message, addresses):
    with pytest.raises(urllib.error.HTTPError) as caught:
        over_http(addresses["http"], inputs)
    assert caught.value.code == 400
    assert re.search(message, json.load(caught.value)["error"])
