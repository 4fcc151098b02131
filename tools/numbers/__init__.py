"""What each rendered number stands for: a name, and how its text comes out of `results/`."""

from tools.numbers import (
    analysis,
    depth,
    exports,
    figure1,
    footprint,
    held_out,
    speed,
    transfer,
    zoo,
)

NUMBERS = {
    name: number
    for room in (zoo, held_out, figure1, depth, speed, analysis, exports, footprint, transfer)
    for name, number in room.NUMBERS.items()
}
