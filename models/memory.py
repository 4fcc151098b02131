"""Check whether a network fits into memory before any of it is made."""

from highway_keras.memory import free, gib

FLOAT = 4  # bytes


def check_memory(weights, copies=1, **arguments):
    """Raise unless the weights of a network fit into the memory that is free.

    Args:
        weights: Their number.
        copies: Arrays of that size: in training, gradients and momentum too.
        **arguments: What their number follows from, for the message.

    Raises:
        ValueError: If they do not fit; the message says how much they would need.
    """
    needed = FLOAT * copies * weights
    if needed > free():
        received = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        kept = "" if copies == 1 else f", of which training keeps {copies} copies,"
        raise ValueError(
            f"The network must fit into memory. Its {weights:.3g} weights{kept} would need "
            f"{gib(needed)}; {gib(free())} are free. Received: {received}."
        )
