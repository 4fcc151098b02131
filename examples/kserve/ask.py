"""Ask the server of `serve.py` to classify picture files.

    python examples/kserve/ask.py grpc://localhost:8081/mnist seven.png two.jpg
    python examples/kserve/ask.py http://localhost:8080/mnist seven.png

gRPC carries the files unchanged. HTTP carries JSON, and therefore base64.
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


def make_request(model, files, as_text):
    """Return a request of the Open Inference Protocol for a list of picture files as bytes."""
    if as_text:
        files = [base64.b64encode(file) for file in files]
    pictures = kserve.InferInput("encoded", [len(files)], "BYTES")
    # "object": an array of bytes would cut zeros from the end of a file.
    pictures.set_data_from_numpy(np.array(files, "object"), binary_data=not as_text)
    return kserve.InferRequest(model, [pictures])


async def answer(url, files):
    """Return the answer of the server at `PROTOCOL://HOST:PORT/MODEL`, arrays by name of output."""
    protocol, address, path, *_ = urllib.parse.urlparse(url)
    model = path.strip("/")
    request = make_request(model, files, as_text=protocol == "http")
    if protocol == "grpc":
        async with kserve.InferenceGRPCClient(address, retries=0) as client:
            results = await client.infer(request)
    else:
        settings = kserve.RESTConfig(protocol="v2", retries=0)
        async with kserve.InferenceRESTClient(settings) as client:
            results = await client.infer(f"http://{address}", request, model_name=model)
    return {output.name: output.as_numpy() for output in results.outputs}


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
