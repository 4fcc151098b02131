"""Two Dense layers per block under XLA."""

from benchmarks.peers import dense_chain, keras_turns


def run(case, turns):
    keras_turns.run(lambda: dense_chain.build(case.depth), case, turns, jit_compile=True)
