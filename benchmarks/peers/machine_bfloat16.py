"""The machine's own rate of multiplication in bfloat16, sums in float32 as the hardware does it."""

from benchmarks.peers import machine


def run(case, turns):
    machine.run(case, turns, "bfloat16")
