"""Speeds: of a step, an epoch, a search, of exported networks and of lesions."""

from tools.numbers.rows import NONE, columns, middle, number, row, rows, table

PEERS = {
    "ours": "**`HighwayStack`, through the trainer**",
    "dense_chain": "two Dense layers per block, Keras `fit`",
    "dense_chain_xla": "the same under XLA",
    "plain": "plain network of equal parameters, Keras `fit`",
    "torch_eager": "PyTorch eager",
    "torch_compile": "PyTorch, `torch.compile`",
    "jax_scan": "JAX by hand, `lax.scan`",
    "products": "the matrix products alone, as a loop",
}
EPOCH = 50_000  # images of CIFAR
RUNTIMES = {
    "keras predict": "Keras `predict`",
    "keras int8": "Keras `predict`, int8",
    "saved_model": "SavedModel",
    "onnx": "ONNX Runtime",
    "litert": "LiteRT",
    "litert float16": "LiteRT float16",
    "litert int8": "LiteRT int8",
    "openvino": "OpenVINO",
    "openvino float16": "OpenVINO float16",
}


def of_1000_layers(column, form):
    """Return a function that gives a figure of a training step of 1000 layers."""
    return number("speed-thin", column, form, case="thin-highway-1000 train", peer="ours")


def of_highway_b(peer):
    """Return a function that gives the time of a step of Highway B over that of a peer."""
    case = {"case": "highway-b train", "peer": peer}
    return number("speed-convolutional", "ours_over_peer", ".2f", **case)


def search(depth, column, form=".0f"):
    """Return a function that gives a figure of our search beside stock keras-tuner."""
    case = {"depth": depth, "images": 10_000, "epochs": 1}
    return number("search-speed", column, form, **case)


def step_of_100_layers():
    """Return the table of a training step of 100 layers beside its peers."""
    header = columns(("100 layers", "ms per step", "ours / theirs", "first step, s"))
    lines = []
    for peer, label in PEERS.items():
        found = row("speed-thin", case="thin-highway-100 train", peer=peer)
        step, first = f"{float(found['ms_a_step']):.1f}", f"{float(found['first_step_s']):.1f}"
        ratio = f"{float(found['ours_over_peer']):.2f}"
        if peer == "ours":
            lines.append((label, f"**{step}**", "", f"**{first}**"))
        else:
            lines.append((label, step, ratio, "" if peer == "products" else first))
    return table(header, lines)


def steps():
    """Return the table of the training steps of our networks, and what they reach."""
    names = ("training step", "batch", "ms", "processor ms", "images per second", "of the machine")
    lines = []
    for file in ("speed-thin", "speed-convolutional"):
        for found in rows(file):
            model, step, *batch = found["case"].replace(" batch", "").split()
            known = found["peer"].startswith("ours") and found.get("cpu_ms_a_step")
            if step != "train" or not known:
                continue
            size = int(batch[0]) if batch else 128 if file == "speed-thin" else 100
            name = f"`{model}`" + (", bfloat16" if "bfloat16" in found["peer"] else "")
            took, share = float(found["ms_a_step"]), float(found["share_of_machine"])
            processor = f"{float(found['cpu_ms_a_step']):.1f}"
            rate = f"{1000 * size / took:,.0f}"
            lines.append((name, str(size), f"{took:.1f}", processor, rate, f"{share:.0%}"))
    return table(columns(names), lines) if lines else NONE


def epochs():
    """Return the table of an epoch of the networks of CIFAR."""
    names = ("network", "images per second", "an epoch", "`fit` / ours", "ours / products")
    lines = []
    for found in rows("speed-epoch", dtype="float32"):
        rate = float(found["images_a_second"])
        ratios = middle(found, "fit_over_ours", ".2f"), f"{float(found['ours_over_products']):.2f}"
        lines.append((f"`{found['model']}`", f"{rate:,.0f}", f"{EPOCH / rate:.0f} s", *ratios))
    return table(columns(names), lines) if lines else NONE


def serving(model):
    """Return a function that gives the table of the runtimes of a network's exports."""

    def text():
        found = rows("serving", file=f"{model}-mnist.keras")
        header = (f"`{model}`", "ms, batch 1", "times faster", "images/s, batch 256")
        lines = []
        for r in found:
            one, rate = f"{float(r['ms_1']):.2f}", 256_000 / float(r["ms_256"])
            faster = [_times(r, f"times_faster_{size}") for size in (1, 256)]
            lines.append((RUNTIMES[r["format"]], one, faster[0], f"{rate:,.0f}", faster[1]))
        return table(columns((*header, "times faster")), lines) if lines else NONE

    return text


def _times(found, name):
    """Return how many times faster a runtime is than the peer, which is as fast as itself."""
    if found["format"] == "keras predict":
        return "1"
    return middle(found, name, ",.0f" if float(found[name]) >= 10 else ".2f")


def server():
    """Return the table of a server under load."""
    names = ("protocol", "clients", "requests per second", "p50, ms", "p99, ms")
    names += ("answers", "errors")
    lines = []
    for r in rows("server"):
        middles = [middle(r, "requests_a_second", ",.0f")]
        middles += [middle(r, f"p{percent}_ms", ".1f") for percent in (50, 99)]
        protocol = {"grpc": "gRPC", "http": "HTTP"}[r["protocol"]]
        lines.append((protocol, r["clients"], *middles, f"{int(r['answers']):,}", r["errors"]))
    return table(columns(names), lines) if lines else NONE


def lesions(size):
    """Return a function that compares all lesions with one evaluation in batches of `size`."""

    def text():
        found = rows("lesions", images=60_000)  # all that there are to train on
        return middle(found[0], f"over_evaluate_{size}", ".1f") if found else NONE

    return text


NUMBERS = {
    "thin100": step_of_100_layers,
    "thin100.n": number("speed-thin", "n", ".0f", case="thin-highway-100 train", peer="ours"),
    "thin1000.first": of_1000_layers("first_step_s", ".1f"),
    "thin1000.ms": of_1000_layers("ms_a_step", ".0f"),
    "thin1000.mb": of_1000_layers("peak_mb", ".0f"),
    "b.two": of_highway_b("two_convolutions"),
    "b.maxout": of_highway_b("maxout"),
    "b.torch": of_highway_b("torch_eager"),
    "search.10": search(10, "ratio_seconds"),
    "search.50": search(50, "ratio_seconds"),
    "search.10.processor": search(10, "ratio_cpu"),
    "search.50.processor": search(50, "ratio_cpu"),
    "search.10.long": search(10, "projected_ratio", ".1f"),
    "search.50.long": search(50, "projected_ratio", ".1f"),
    "steps": steps,
    "epochs": epochs,
    "serving.16": serving("mnist-highway-16"),
    "serving.50": serving("thin-highway-50"),
    "server": server,
    "lesions.500": lesions(500),
    "lesions.2000": lesions(2000),
}
