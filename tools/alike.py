"""Runs that may share a row or a model card: of one network, alike but for their seeds."""

from highway_keras.training.recipe import compared_fields


def common_settings(runs):
    """Return the settings of the first of some runs.

    Args:
        runs: `RunFolder`s.

    Raises:
        ValueError: Unless all of them trained the network as it is registered, from scratch and to
            the end, and differ only in their seeds.
    """
    for run in runs:
        _check_whole(run)
    settings = [run.read_json() for run in runs]
    first, *others = [_without_seed(each) for each in settings]
    differing = {k for other in others for k in first | other if first.get(k) != other.get(k)}
    if differing:
        raise ValueError(f"Runs must be alike. They differ in: {', '.join(sorted(differing))}.")
    seeds = [each["seed"] for each in settings]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"Runs must have different seeds. Received: {seeds}.")
    if settings[0]["model_options"]:
        raise ValueError(
            "Runs must be of the network as it is registered. Received: model_options="
            f"{settings[0]['model_options']}."
        )
    if "weights" in settings[0]:
        raise ValueError(
            f"Runs must have started from scratch. Received: weights={settings[0]['weights']}."
        )
    return settings[0]


def _check_whole(run):
    if not run.has_ended:
        raise ValueError(f"`folders` must hold runs that have ended. Received: {run.path}.")
    planned = run.read_json()["recipe"]["epochs"]
    if run.epochs < planned:
        raise ValueError(
            "Runs must have all epochs of their recipe. "
            f"Received: {run.path}, stopped after {run.epochs} of {planned}."
        )


def _without_seed(settings):
    kept = {key: value for key, value in settings.items() if key not in ("seed", "results")}
    return {**kept, "recipe": compared_fields(settings["recipe"])}
