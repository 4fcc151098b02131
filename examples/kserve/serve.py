"""A SavedModel of `highway-keras export` behind KServe's model server.

    python examples/kserve/serve.py serving/mnist/1 --model_name mnist

It speaks the Open Inference Protocol, version 2, over HTTP and gRPC. A request has one input,
`encoded`: PNG or JPEG files, as bytes over gRPC, in base64 over HTTP, since JSON holds no bytes. It
needs the `requirements.txt` next to this file, and uses neither Keras nor highway-keras.
"""

import argparse
import asyncio
import base64
import binascii
import io
import uuid

import kserve
import tensorflow as tf
from kserve.errors import InvalidInput
from PIL import Image

INPUT = "encoded"
# Of one picture. A file of a few kilobytes can expand to gigabytes of pixels.
MOST_PIXELS = 2**24
Image.MAX_IMAGE_PIXELS = None  # whose error would come before ours
DATATYPES = {"float32": "FP32", "int64": "INT64", "object": "BYTES"}


class PictureClassifier(kserve.Model):
    """An exported network that classifies picture files.

    Args:
        name: What requests call it.
        folder: Folder of the SavedModel.
    """

    def __init__(self, name, folder):
        super().__init__(name)
        self._loaded = tf.saved_model.load(folder)  # a signature does not keep its weights alive
        if INPUT not in self._loaded.signatures:
            raise ValueError(f"{folder} has no signature {INPUT!r}, which takes picture files.")
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
        try:
            outputs = self._classify(encoded=tf.constant(files))
        except tf.errors.InvalidArgumentError as error:
            damaged = [number for number, file in enumerate(files) if not self._can_decode(file)]
            raise InvalidInput(f"`{INPUT}` holds damaged pictures: elements {damaged}.") from error
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    def _can_decode(self, file):
        try:
            self._classify(encoded=tf.constant([file]))
        except tf.errors.InvalidArgumentError:
            return False
        return True


def read_files(request):
    """Return the picture files of a request, a list of bytes.

    Raises:
        InvalidInput: If there are none; the client gets HTTP 400 or INVALID_ARGUMENT.
    """
    inputs = request.inputs if isinstance(request, kserve.InferRequest) else []
    pictures = [one for one in inputs if one.name == INPUT and one.datatype == "BYTES"]
    if len(inputs) != 1 or not pictures:
        raise InvalidInput(f"A request must have one input, `{INPUT}`, of datatype BYTES.")
    try:
        values = pictures[0].as_numpy().ravel()
    except ValueError as error:
        raise InvalidInput(f"`{INPUT}` does not have the shape that it states.") from error
    if not len(values):
        raise InvalidInput(f"`{INPUT}` must hold one picture or more.")
    return [_as_bytes(value, number) for number, value in enumerate(values)]


def _as_bytes(value, number):
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise InvalidInput(f"`{INPUT}` must hold base64. Element {number} does not.") from error


def check_pictures(files):
    """Raise `InvalidInput` unless all files begin as PNG or JPEG pictures of a size we decode."""
    for number, file in enumerate(files):
        try:
            with Image.open(io.BytesIO(file), formats=("PNG", "JPEG")) as picture:
                width, height = picture.size
        except Exception as error:  # Pillow's readers raise errors of many kinds
            raise InvalidInput(
                f"`{INPUT}` must hold PNG or JPEG files. Element {number} is neither."
            ) from error
        if width * height > MOST_PIXELS:
            raise InvalidInput(
                f"`{INPUT}` must hold pictures of at most {MOST_PIXELS:,} pixels. "
                f"Element {number} has {width} x {height}."
            )


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
