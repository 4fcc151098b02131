"""Fine-tuning on few images: the four ways side by side."""

from tools.numbers.rows import NONE, columns, rows, table

WAYS = {
    "frozen": "classifier only (`--freeze`)",
    "adapters": "adapters of rank 2 and classifier",
    "all": "all of it",
    "scratch": "all of it, from scratch",
}


def ways():
    """Return the table of the four ways, each at the rate that held-out images chose."""
    header = ("trained", "parameters", "rate", "held out, %", "test, %", "processor seconds")
    lines = []
    for way, name in WAYS.items():
        for r in rows("transfer", way=way, chosen=1):
            numbers = (
                f"{int(r['parameters']):,}",
                r["learning_rate"],
                f"{float(r['held_out']):.1f}",
            )
            test = f"{float(r['mean']):.1f} ± {float(r['std']):.1f}"
            lines.append((name, *numbers, test, f"{float(r['processor_seconds']):.0f}"))
    return table(columns(header), lines) if lines else NONE


def of(column):
    """Return a function that gives what all rows have in a column."""

    def text():
        found = {r[column] for r in rows("transfer", chosen=1)}
        return found.pop() if len(found) == 1 else NONE

    return text


def rates():
    """Return the learning rates among which held-out images chose."""
    found = sorted({float(r["learning_rate"]) for r in rows("transfer")})
    return ", ".join(f"{rate:g}" for rate in found) or NONE


NUMBERS = {
    "transfer": ways,
    "transfer.images": of("images"),
    "transfer.epochs": of("epochs"),
    "transfer.n": of("n"),
    "transfer.rates": rates,
}
