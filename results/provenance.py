"""Where a number comes from: the columns that every row of a measurement ends with."""

import shlex

COLUMNS = ("hardware", "versions", "commit", "date", "command")


def command_line(*words, **options):
    """Return the command that repeats a measurement, quoted for a shell.

    Args:
        *words: The first words of the command.
        **options: Options by name. A value may be a list of values, or a dictionary for `KEY=VALUE`
            pairs; `True` stands for an option without a value. `None` and `False` are left out.
    """
    line = [shlex.quote(str(word)) for word in words]
    for name, value in options.items():
        if value is None or value is False:
            continue
        line.append(f"--{name.replace('_', '-')}")
        if isinstance(value, dict):
            for key, one in value.items():
                one = tuple(one) if isinstance(one, list) else one  # a tuple stored as JSON
                pair = f"{key}={one}".replace(", ", ",")
                line.append(f'"{pair}"' if "(" in pair else shlex.quote(pair))
        elif value is not True:
            values = value if isinstance(value, list | tuple) else [value]
            line += [shlex.quote(str(one)) for one in values]
    return " ".join(line)
