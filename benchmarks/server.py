"""A server under load: many clients query an exported network behind KServe's model server.

    python -m benchmarks.server run/best.keras

It starts `examples/kserve/serve.py` on this machine. The `requirements.txt` there must be installed
alongside this package. Each client sends one PNG file, waits for the answer and sends the next;
every answer is compared with Keras's. Clients and server share the cores.
"""

import asyncio
import contextlib
import io
import itertools
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib import metadata

from benchmarks import measurements
from benchmarks.turns import ENVIRONMENT

SERVE = measurements.ROOT / "examples" / "kserve" / "serve.py"
MODEL, PROTOCOLS = "network", ("grpc", "http")
PICTURES, WARM_UP, LIMIT = 200, 20, 120  # files, requests of each client, seconds


def main(arguments=None):
    sizes = {"clients": (8, "clients"), "seconds": (30, "seconds of a turn")}
    parser = measurements.parser("benchmarks.server", __doc__, turns=3, data=True, **sizes)
    parser.add_argument("file", metavar="FILE", help="a .keras file that `fit` saved")
    options = parser.parse_args(arguments)
    import numpy as np

    turns = {protocol: [] for protocol in PROTOCOLS}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder) / "1"
        pictures = _prepare(options.file, folder, options.data_dir)
        with serving(folder) as addresses:
            for index in range(options.turns):
                for protocol in PROTOCOLS:
                    measurements.say(f"{protocol}: turn {index + 1} of {options.turns}")
                    asked = (protocol, addresses[protocol], *pictures, options.seconds)
                    turns[protocol].append(asyncio.run(_load(*asked, clients=options.clients)))
    rows = []
    for protocol, counted in turns.items():
        row = {"file": measurements.name_of(options.file), "protocol": protocol}
        row["server"] = f"kserve {metadata.version('kserve')}"
        row |= {"clients": options.clients, "seconds": options.seconds, "n": options.turns}
        row["answers"] = sum(len(latencies) for latencies, _ in counted)
        row["errors"] = sum(errors for _, errors in counted)
        rates = [len(latencies) / options.seconds for latencies, _ in counted]
        row |= measurements.middle("requests_a_second", rates)
        for percent in (50, 99):
            values = [float(np.percentile(ms or np.nan, percent)) for ms, _ in counted]
            row |= measurements.middle(f"p{percent}_ms", values)
        rows.append(row)
    asked = {name: getattr(options, name) for name in ("clients", "seconds", "turns")}
    keys, command = ("file", "protocol", "clients"), ("benchmarks.server", options.file)
    measurements.record(rows, keys, options.out, *command, **asked)


def _prepare(file, folder, data_dir):
    """Export a saved network; return PNG files of test images and the classes Keras sees there."""
    from PIL import Image

    from highway_keras import data, models
    from highway_keras.export import export

    trained = models.load(file)
    images = data.load(trained.dataset, data_dir=data_dir)
    export(trained.complete, folder, images, class_names=trained.class_names)
    pixels, files = images.x_test[:PICTURES], []
    for image in pixels:
        buffer = io.BytesIO()
        Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(buffer, "PNG")
        files.append(buffer.getvalue())
    return files, trained.complete.predict(pixels, verbose=0).argmax(-1)


@contextlib.contextmanager
def serving(folder):
    """Serve a SavedModel as `MODEL`; yield the addresses by protocol, then stop it cleanly."""
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.create_server(("localhost", 0))) for _ in PROTOCOLS]
        grpc, http = (str(each.getsockname()[1]) for each in sockets)
    command = [sys.executable, str(SERVE), str(folder), "--model_name", MODEL]
    command += ["--grpc_port", grpc, "--http_port", http]
    process = subprocess.Popen(
        command, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.DEVNULL
    )
    try:
        ready, ends = f"http://localhost:{http}/v2/models/{MODEL}/ready", time.monotonic() + LIMIT
        while True:
            if process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError(f"The server did not start: code {process.poll()}.")
            time.sleep(0.2)
            with contextlib.suppress(OSError), urllib.request.urlopen(ready):
                break
        yield {"grpc": f"localhost:{grpc}", "http": f"localhost:{http}"}
    finally:
        process.terminate()
        code = process.wait(LIMIT)
    if code:
        raise RuntimeError(f"The server ended with code {code}.")


async def _load(*asked, clients):
    """Return the milliseconds of all right answers, and how many requests failed."""
    counted = await asyncio.gather(*(_client(*asked, first) for first in range(clients)))
    return [ms for latencies, _ in counted for ms in latencies], sum(e for _, e in counted)


async def _client(protocol, address, files, classes, seconds, first):
    """Send requests for some seconds; return the ms of each right answer, and how many failed."""
    from examples.kserve.ask import connected

    latencies, errors, ends = [], 0, None
    async with connected(protocol, address, MODEL) as ask:
        for number in itertools.count(first):
            if number == first + WARM_UP:
                latencies, ends = [], time.monotonic() + seconds
            picture, begun = number % len(files), time.perf_counter()
            try:
                answer = await ask([files[picture]])
                wrong = answer["class_id"][0] != classes[picture]
            except Exception as error:  # whatever a client raises, the answer is lost
                measurements.say(f"{type(error).__name__}: {error}")
                wrong = True
            if wrong:
                errors += 1
            else:
                latencies.append(1000 * (time.perf_counter() - begun))
            if ends and time.monotonic() > ends:
                return latencies, errors


if __name__ == "__main__":
    main()
