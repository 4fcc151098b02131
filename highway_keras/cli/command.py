"""The command `highway-keras`: arguments in, calls of the library, a table or a line out.

Keras takes seconds to import, so each command imports what it needs when it runs.
"""

import argparse
import contextlib
import errno
import os
import re
import shlex
import sys
import traceback

from highway_keras.cli import reproduce, saved, search, training, zoo  # noqa: F401 (they declare)
from highway_keras.cli.shared import COMMANDS
from highway_keras.util.files import is_out_of_memory
from highway_keras.util.messages import printable
from highway_keras.version import __version__

ORDER = "list fit predict evaluate analyze compact export search reproduce".split()
FAILED, MISUSED, INTERRUPTED = 1, 2, 130
USER_ERRORS = (ValueError, TypeError, OSError, ImportError)
FULL = (errno.ENOSPC, errno.EDQUOT)
# Variables by which a run continues: another backend or device computes otherwise
REPEATED = ["KERASTUNER_" + name for name in ("ORACLE_IP", "ORACLE_PORT", "TUNER_ID")]
REPEATED += ["TFDS_DATA_DIR", "KERAS_BACKEND"]
REPEATED += ["CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS", "KERAS_TORCH_DEVICE", "TF_CONFIG"]
REPEATED += ["KERAS_DISTRIBUTION_" + s for s in ("JOB_ADDRESSES", "NUM_PROCESSES", "PROCESS_ID")]


def main(arguments=None):
    """Run the command; return its exit code: 0, 1 failed, 2 misused, 130 interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for descriptor in range(3):  # one that the shell has closed would go to the next file
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):  # `None` if it was closed
        setattr(sys, name, getattr(sys, name) or open(os.devnull, "w"))
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack "±"
    try:
        options = vars(parser().parse_args(arguments))
    except SystemExit:  # after `--help`, `--version` or a mistake
        _drop_unwritable()
        raise
    function, flags, continues, debug = (
        options.pop(key) for key in ("function", "flags", "continues", "debug")
    )
    try:
        code = function(**options) or 0
        print(end="", flush=True)  # here, since a failure at Python's exit cannot be caught
        return code
    except (KeyboardInterrupt, BrokenPipeError) as stopped:
        message, resumes = "Interrupted.", continues or "resume" in options
        if isinstance(stopped, BrokenPipeError) and not resumes:  # `head`, say, has seen enough
            _drop_unwritable()
            return 0
        if resumes:
            again = [] if continues or options["resume"] else ["--resume"]
            name, *rest = arguments  # which may hold --
            again = shlex.join(["highway-keras", name, *again, *rest])
            for name in REPEATED:
                if (value := os.environ.get(name)) is not None:
                    again = f"{name}={shlex.quote(value)} {again}"
            message = f"Interrupted. Nothing finished is lost; continue with: {again}"
        return _end(INTERRUPTED, message)
    except Exception as error:
        code = _exit_code(error)
        if code is None:  # a mistake of ours
            raise
        if debug:
            traceback.print_exc()
        message = str(error)
        if isinstance(error, OSError) and error.strerror:  # without the number
            where = "" if error.filename is None else f"{error.filename}: "
            message = f"{where}{error.strerror}."
        message = message or type(error).__name__
        if is_out_of_memory(error) and "population" in options:
            message += " If memory ran out: `population` sets how many trials train at once."
        return _end(code, _with_flags(message, flags))


def _exit_code(error):
    """Return the exit code after an error, or `None` if it is a bug in this library."""
    # The library's own errors have the system's as their cause; Keras raises anew, without it.
    cause = error.__cause__ or error.__context__
    if any(getattr(e, "errno", None) in FULL for e in (error, cause)):
        return FAILED
    if isinstance(error, USER_ERRORS):
        return MISUSED
    return FAILED if isinstance(error, RuntimeError) or is_out_of_memory(error) else None


def _end(code, message):
    line = re.sub(r"\s*\n\s*", " ", message.strip())  # spaces may be those of a path
    with contextlib.suppress(OSError):  # the code is still heard
        print(f"highway-keras: {printable(line)}", file=sys.stderr)
    _drop_unwritable()
    return code


def _drop_unwritable():
    """Drop output that stdout cannot take: at exit, Python would retry it and print an error."""
    try:
        print(end="", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_flags(message, flags):
    """Return a message of the library with flags in place of arguments: --out for `out`."""
    for name, flag in flags.items():
        message = message.replace(f"`{name}`", flag)
        given = not flag.startswith("--no-")
        message = re.sub(rf"\b{name}={given}\b", flag, message)
        message = re.sub(rf"(?<!-set )(?<![\w/.=-]){name}=(?=\S)", f"{flag} ", message)
    return message


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong with the arguments in one line, without the usage."""

    def __init__(self, **settings):
        super().__init__(**settings, allow_abbrev=False)  # `--seed` is not `--seeds`

    def parse_known_args(self, *arguments, **settings):
        options, unknown = super().parse_known_args(*arguments, **settings)
        if unknown:  # here, where the command is known whose help lists its options
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        for name, value in vars(options).items():
            if "" in (value if isinstance(value, list) else [value]):
                # For example an unset shell variable, which must not stand for the default.
                self.error(f"argument {options.flags.get(name, name)}: expected text, received ''")
        return options, unknown

    def error(self, message):
        self.exit(MISUSED, f"{self.prog}: {printable(message)}. See {self.prog} --help.\n")


def parser():
    """Return the parser of the command; `shtab` reads it to complete commands in a shell."""
    whole = _Parser(
        prog="highway-keras",
        description="Highway networks in Keras: train, evaluate and use the networks of "
        '"Training Very Deep Networks" (Srivastava et al., 2015).',
        epilog="A run that downloads nothing: highway-keras fit thin-highway-10 --dataset digits",
    )
    whole.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    families = {"": whole.add_subparsers(title="commands", metavar="COMMAND", required=True)}
    summary = "Repeat an experiment of the paper, or compare with its authors' logs."
    for name in sorted(COMMANDS, key=lambda name: ORDER.index(name.split()[0])):
        function, said, arguments, continues = COMMANDS[name]
        family, _, leaf = name.rpartition(" ")
        if family not in families:
            experiments = families[""].add_parser(family, help=summary, description=summary)
            families[family] = experiments.add_subparsers(
                title="experiments", metavar="EXPERIMENT", required=True
            )
        one = families[family].add_parser(leaf, help=said, description=said)
        for argument in arguments:
            exclusive = isinstance(argument, list)
            group = one.add_mutually_exclusive_group() if exclusive else one
            for flags, settings, complete in argument if exclusive else [argument]:
                action = group.add_argument(*flags, **settings)
                if complete:
                    action.complete = complete
        one.add_argument("--debug", action="store_true", help="show the traceback of an error")
        flags = {
            a.dest: a.option_strings[-1] if a.option_strings else a.metavar for a in one._actions
        }
        one.set_defaults(function=function, flags=flags, continues=continues)
    return whole
