"""A server under load: many clients query an exported network behind KServe's model server.

    python -m benchmarks.server run/best.keras

It starts `examples/kserve/serve.py` on this machine. The `requirements.txt` there must be installed
alongside this package. Each client sends one PNG file, waits for the answer and sends the next;
every answer is compared with Keras's. Clients and server share the cores.
"""

import argparse
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

import numpy as np

from benchmarks import report
from benchmarks.turns import ENVIRONMENT, ROOT

MODEL, PROTOCOLS = "network", ("grpc", "http")
PICTURES, WARM_UP, START_LIMIT = 200, 20, 120  # files, requests of each client, seconds


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server")
    parser.add_argument("file", metavar="FILE", help="a .keras file that `fit` saved")
    parser.add_argument("--clients", type=report.positive, default=8, help="default: 8")
    parser.add_argument("--seconds", type=report.positive, default=30, help="default: 30")
    parser.add_argument(
        "--turns", type=report.positive, default=3, help="turns of each protocol (default: 3)"
    )
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    report.add_out(parser)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder) / "1"
        files, classes = _prepare(options.file, folder, options.data_dir)
        with serving(folder) as addresses:
            turns = _take_turns(addresses, files, classes, options)
    rows = [_row(options, protocol, turns[protocol]) for protocol in PROTOCOLS]
    _print(rows)
    if options.out:
        asked = {name: getattr(options, name) for name in ("clients", "seconds", "turns")}
        command = report.command("benchmarks.server", options.file, **asked)
        report.save(options.out, rows, ("file", "protocol", "clients"), command)


def _prepare(file, folder, data_dir):
    """Export a saved network; return PNG files of test images and the classes Keras sees there."""
    from PIL import Image

    from highway_keras import data, training
    from highway_keras.export import export

    saved = training.SavedNetwork(file)
    images = data.load(saved.dataset, data_dir=data_dir)
    report.say("exporting")
    export(file, folder, dataset=images)
    pixels, files = images.x_test[:PICTURES], []
    for image in pixels:
        buffer = io.BytesIO()
        Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(buffer, "PNG")
        files.append(buffer.getvalue())
    return files, saved.model.predict(pixels, verbose=0).argmax(-1)


@contextlib.contextmanager
def serving(folder):
    """Serve a SavedModel as `MODEL`; yield the addresses by protocol, then stop it cleanly.

    Raises:
        RuntimeError: If the server does not start, or does not end cleanly on SIGTERM.
    """
    addresses = dict(zip(PROTOCOLS, (f"localhost:{port}" for port in _free_ports(2)), strict=True))
    ports = [a.partition(":")[2] for a in addresses.values()]
    command = [sys.executable, ROOT / "examples/kserve/serve.py", folder, "--model_name", MODEL]
    command += ["--grpc_port", ports[0], "--http_port", ports[1]]
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        process = subprocess.Popen(
            [str(part) for part in command],
            env={**os.environ, **ENVIRONMENT},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_until_ready(addresses["http"], process)
            yield addresses
        finally:
            process.terminate()
            code = process.wait(START_LIMIT)
        if code:
            raise RuntimeError(f"The server ended with code {code}.")


def _free_ports(count):
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait_until_ready(address, process):
    ends = time.monotonic() + START_LIMIT
    while process.poll() is None and time.monotonic() < ends:
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"http://{address}/v2/models/{MODEL}/ready"):
                return
        time.sleep(0.2)
    raise RuntimeError(f"The server did not start: code {process.poll()}.")


def _take_turns(addresses, files, classes, options):
    """Return (latencies in ms, errors) of each turn by protocol; the protocols alternate."""
    turns = {protocol: [] for protocol in PROTOCOLS}
    for index in range(options.turns):
        for protocol in PROTOCOLS:
            report.say(f"{protocol}: turn {index + 1} of {options.turns}")
            load = _load(protocol, addresses[protocol], files, classes, options)
            turns[protocol].append(asyncio.run(load))
    return turns


async def _load(protocol, address, files, classes, options):
    clients = [
        _client(protocol, address, files, classes, options.seconds, first)
        for first in range(options.clients)
    ]
    counted = await asyncio.gather(*clients)
    return [ms for latencies, _ in counted for ms in latencies], sum(e for _, e in counted)


async def _client(protocol, address, files, classes, seconds, first):
    """Send requests for some seconds; return the ms of each right answer, and how many failed."""
    from examples.kserve.ask import connected

    latencies, errors, ends = [], 0, None
    async with connected(protocol, address, MODEL) as ask:
        for number in itertools.count(first):
            if number == first + WARM_UP:
                latencies, errors, ends = [], 0, time.monotonic() + seconds
            picture, begun = number % len(files), time.perf_counter()
            try:
                answer = await ask([files[picture]])
                wrong = answer["class_id"][0] != classes[picture]
            except Exception as error:  # whatever a client raises, the answer is lost
                report.say(f"{type(error).__name__}: {error}")
                wrong = True
            if wrong:
                errors += 1
            else:
                latencies.append(1000 * (time.perf_counter() - begun))
            if ends and time.monotonic() > ends:
                return latencies, errors


def _row(options, protocol, turns):
    name = pathlib.Path(options.file).name
    row = {"file": name, "server": f"kserve {metadata.version('kserve')}", "protocol": protocol}
    row |= {"clients": options.clients, "seconds": options.seconds, "n": len(turns)}
    row["answers"] = sum(len(latencies) for latencies, _ in turns)
    row["errors"] = sum(errors for _, errors in turns)
    rates = [len(latencies) / options.seconds for latencies, _ in turns]
    row |= report.middle("requests_a_second", rates)
    for percent in (50, 99):
        values = [float(np.percentile(latencies or np.nan, percent)) for latencies, _ in turns]
        row |= report.middle(f"p{percent}_ms", values)
    return row


def _print(rows):
    first = rows[0]
    print(f"{first['clients']} clients, {first['n']} turns of {first['seconds']} s; median")
    print(report.load())
    for row in rows:
        print(
            f"{row['protocol']}: {row['requests_a_second']:,.0f} requests/s, "
            f"p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms, "
            f"{row['answers']:,} answers, {row['errors']} errors"
        )


if __name__ == "__main__":
    main()
