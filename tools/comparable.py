"""Runs that may share a row or a model card: of one network, the same but for their seeds."""

from highway_keras.training.recipe import compared_fields


def common_settings(runs):
    """Return the settings of the first of some `RunFolder`s.

    Raises:
        ValueError: Unless all of them trained the network as it is registered, from scratch and to
            the end, and differ only in their seeds.
    """
    for run in runs:
        if not run.has_ended or run.epochs < run.read_json()["recipe"]["epochs"]:
            raise ValueError(
                "`folders` must hold runs that have ended, after all epochs of their recipe. "
                f"Received: {run.path}."
            )
    first, *_ = settings = [run.read_json() for run in runs]
    seeds = [each["seed"] for each in settings]
    compared = [
        {**each, "recipe": compared_fields(each["recipe"]), "seed": None, "results": None}
        for each in settings
    ]
    differing = {k for c in compared for k in c | compared[0] if c.get(k) != compared[0].get(k)}
    if differing or len(set(seeds)) < len(seeds):
        raise ValueError(
            "Runs must be the same but for their seeds. Received: seeds "
            f"{', '.join(map(str, seeds))}, differing in {', '.join(sorted(differing)) or 'none'}."
        )
    if first["model_options"] or "weights" in first or "loss_weights" in first:
        raise ValueError(
            "Runs must be of the network as it is registered, from scratch, with images of equal "
            "weight. Received: "
            f"model_options={first['model_options']}, weights={first.get('weights')}."
        )
    return first
