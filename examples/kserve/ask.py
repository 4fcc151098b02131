"""Ask the server of `serve.py` to classify picture files.

    python examples/kserve/ask.py grpc://localhost:8081/mnist seven.png two.jpg
    python examples/kserve/ask.py http://localhost:8080/mnist seven.png

gRPC carries the files unchanged. HTTP carries JSON, and therefore base64.
"""

import argparse
import asyncio
import base64
import contextlib
import functools
import pathlib
import sys
import urllib.parse

import grpc
import httpx
import kserve
import numpy as np


@contextlib.asynccontextmanager
async def connected(protocol, address, model):
    """Yield an asynchronous function from picture files to the answer, arrays by name of output.

    Args:
        protocol: `"grpc"` or `"http"`.
        address: HOST:PORT.
        model: Name of the model.
    """
    if protocol == "grpc":
        client = kserve.InferenceGRPCClient(address, retries=0)
        send = client.infer
    else:
        client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2", retries=0))
        send = functools.partial(client.infer, f"http://{address}", model_name=model)

    async def ask(files):
        answer = await send(make_request(model, files, as_text=protocol == "http"))
        return {output.name: output.as_numpy() for output in answer.outputs}

    async with client:
        yield ask


def make_request(model, files, as_text):
    """Return a request of the Open Inference Protocol for a list of picture files as bytes."""
    if as_text:
        files = [base64.b64encode(file) for file in files]
    pictures = kserve.InferInput("encoded", [len(files)], "BYTES")
    # "object": an array of bytes would cut zeros from the end of a file.
    pictures.set_data_from_numpy(np.array(files, "object"), binary_data=not as_text)
    return kserve.InferRequest(model, [pictures])


async def answer(url, files):
    """Return the answer of the server at `PROTOCOL://HOST:PORT/MODEL`."""
    parts = urllib.parse.urlparse(url)
    async with connected(parts.scheme, parts.netloc, parts.path.strip("/")) as ask:
        return await ask(files)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="grpc://HOST:PORT/MODEL or http://HOST:PORT/MODEL")
    parser.add_argument("pictures", nargs="+", type=pathlib.Path, help="PNG or JPEG files")
    options = parser.parse_args()
    files = [path.read_bytes() for path in options.pictures]
    try:
        outputs = asyncio.run(answer(options.url, files))
    except grpc.aio.AioRpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
    except httpx.HTTPError as error:
        sys.exit(str(error))
    names, probabilities = outputs["class_name"], outputs["probabilities"].max(-1)
    for path, name, probability in zip(options.pictures, names, probabilities, strict=True):
        name = name.decode() if isinstance(name, bytes) else name
        print(f"{path}: {name}  {probability:.4f}")


if __name__ == "__main__":
    main()
