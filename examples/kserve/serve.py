"""A SavedModel of `highway-keras export` behind KServe's model server.

    python examples/kserve/serve.py serving/mnist/1 --model_name mnist

It speaks the Open Inference Protocol, version 2, over HTTP and gRPC. A request has one input,
`encoded`: PNG or JPEG files, as bytes over gRPC, in base64 over HTTP, since JSON holds no bytes. It
needs the `requirements.txt` next to this file, and uses neither Keras nor highway-keras.
"""

import argparse
import asyncio
import base64
import io
import uuid

import kserve
import tensorflow as tf
from kserve.errors import InvalidInput
from PIL import Image

INPUT = "encoded"
DATATYPES = {"float32": "FP32", "int64": "INT64", "object": "BYTES"}
# A file of a few kilobytes can expand to gigabytes of pixels. Pillow refuses twice this number.
Image.MAX_IMAGE_PIXELS = 2**23


class PictureClassifier(kserve.Model):
    """An exported network that classifies picture files.

    Args:
        name: What requests call it.
        folder: Folder of the SavedModel.
    """

    def __init__(self, name, folder):
        super().__init__(name)
        self._loaded = tf.saved_model.load(folder)  # a signature does not keep its weights alive
        self._classify = self._loaded.signatures[INPUT]
        self.ready = True

    def get_input_types(self):
        return [{"name": INPUT, "datatype": "BYTES", "shape": [-1]}]

    def get_output_types(self):
        return [
            {
                "name": name,
                "datatype": DATATYPES[spec.dtype.as_numpy_dtype.__name__],
                "shape": [-1, *spec.shape[1:]],
            }
            for name, spec in sorted(self._classify.structured_outputs.items())
        ]

    async def predict(self, payload, headers=None, response_headers=None):
        files = read_files(payload)
        # Run in a thread, so that the server can take other requests meanwhile.
        outputs = await asyncio.to_thread(self._run, files)
        return kserve.InferResponse(
            response_id=payload.id or str(uuid.uuid4()),
            model_name=self.name,
            infer_outputs=[_output(name, value) for name, value in sorted(outputs.items())],
        )

    def _run(self, files):
        check_pictures(files)
        outputs = self._classify(encoded=tf.constant(files))
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def read_files(request):
    """Return the picture files of a request, a list of bytes.

    Raises:
        InvalidInput: If it holds something else; the client gets HTTP 400 or INVALID_ARGUMENT.
    """
    try:
        (pictures,) = (one for one in request.inputs if one.name == INPUT)
        files = pictures.as_numpy().ravel()
        return [f if isinstance(f, bytes) else base64.b64decode(f, validate=True) for f in files]
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"A request must have one input, `{INPUT}`, of datatype BYTES: files as bytes, or in "
            f"base64 over HTTP. {error}"
        ) from error


def check_pictures(files):
    """Raise `InvalidInput` unless Pillow can read all files."""
    for number, file in enumerate(files):
        try:
            Image.open(io.BytesIO(file), formats=("PNG", "JPEG")).load()
        except Exception as error:  # Pillow's readers raise errors of many kinds
            raise InvalidInput(
                f"`{INPUT}` must hold PNG or JPEG files. Element {number} is none that Pillow can "
                f"read: {error}"
            ) from error


def _output(name, value):
    output = kserve.InferOutput(name, list(value.shape), DATATYPES[value.dtype.name])
    output.set_data_from_numpy(value, binary_data=False)
    return output


def main():
    parser = argparse.ArgumentParser(parents=[kserve.model_server.parser])
    parser.add_argument("folder", help="folder of the SavedModel, such as serving/mnist/1")
    options = parser.parse_args()
    model = PictureClassifier(options.model_name, options.folder)
    kserve.ModelServer(enable_latency_logging=False).start([model])


if __name__ == "__main__":
    main()
