"""This library in bfloat16, with weights in float32: `--dtype-policy mixed_bfloat16`."""

import keras

from benchmarks.peers import ours


def run(case, turns):
    keras.config.set_dtype_policy("mixed_bfloat16")
    ours.run(case, turns)
