"""Ask the server of `serve.py` what is on picture files.

    python examples/kserve/ask.py grpc://localhost:8081/mnist seven.png two.jpg
    python examples/kserve/ask.py http://localhost:8080/mnist seven.png

gRPC carries the files as they are. HTTP carries JSON, and so base64.
"""

import argparse
import asyncio
import base64
import pathlib
import sys
import urllib.parse

import grpc
import httpx
import kserve
import numpy as np


def make_request(model, files, as_text=False):
    """Return a request of the Open Inference Protocol for a list of picture files as bytes."""
    if as_text:
        files = [base64.b64encode(file) for file in files]
    pictures = kserve.InferInput("encoded", [len(files)], "BYTES")
    # "object": an array of bytes would cut zeros from the end of a file.
    pictures.set_data_from_numpy(np.array(files, "object"), binary_data=not as_text)
    return kserve.InferRequest(model, [pictures])


async def ask_grpc(address, model, files):
    """Return the answer, an array by name of output."""
    async with kserve.InferenceGRPCClient(address) as client:
        return _arrays(await client.infer(make_request(model, files)))


async def ask_http(address, model, files):
    """Return the answer, an array by name of output."""
    config = kserve.RESTConfig(protocol="v2")
    async with kserve.InferenceRESTClient(config) as client:
        request = make_request(model, files, as_text=True)
        return _arrays(await client.infer(f"http://{address}", request, model_name=model))


def _arrays(answer):
    return {output.name: output.as_numpy() for output in answer.outputs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", type=urllib.parse.urlparse, help="grpc:// or http://HOST:PORT/MODEL")
    parser.add_argument("pictures", nargs="+", type=pathlib.Path, help="PNG or JPEG files")
    options = parser.parse_args()
    files = [path.read_bytes() for path in options.pictures]
    ask = {"grpc": ask_grpc, "http": ask_http}[options.url.scheme]
    try:
        answer = asyncio.run(ask(options.url.netloc, options.url.path.strip("/"), files))
    except grpc.aio.AioRpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
    except httpx.HTTPError as error:
        sys.exit(str(error))
    for path, name, p in zip(
        options.pictures, answer["class_name"], answer["probabilities"], strict=True
    ):
        name = name.decode() if isinstance(name, bytes) else name
        print(f"{path}: {name}  {p.max():.4f}")


if __name__ == "__main__":
    main()
