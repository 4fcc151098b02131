"""The command `highway-keras`: arguments in, calls of the library, a table or a line out.

Each command is a function that composes the library. Keras takes seconds to import, so a command
imports it when it runs.
"""

import argparse
import os
import shlex
import sys
import traceback
import warnings

from highway_keras.cli import fit, networks, reproduce, search
from highway_keras.util.messages import printable, reason
from highway_keras.version import __version__

FAILED, MISUSED, INTERRUPTED = 1, 2, 130


def main(arguments=None):
    """Run the command; return its exit code: 0, 1 failed, 2 misused, 130 interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack "±"
    options = parser().parse_args(arguments)
    warnings.showwarning = _show_warning
    try:
        code = options.function(options) or 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        message = "Interrupted."
        if hasattr(options, "resume"):
            again = arguments if options.resume else [*arguments, "--resume"]
            message += f" Continue with: {shlex.join(['highway-keras', *again])}"
        elif arguments[0] == "reproduce":
            message += " The same command continues its searches and runs."
        return _end(INTERRUPTED, message)
    except (ValueError, TypeError, OSError, ImportError, RuntimeError, MemoryError) as error:
        if options.debug:
            traceback.print_exc()
        is_misused = isinstance(error, ValueError | TypeError | ImportError | FileNotFoundError)
        return _end(MISUSED if is_misused else FAILED, f"{reason(error)}.")


def _end(code, message):
    print(f"highway-keras: {printable(message)}", file=sys.stderr)
    return code


def _show_warning(message, *where, **others):
    print(f"highway-keras: {printable(message)}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """A parser that says a mistake in one line, without the usage."""

    def error(self, message):
        self.exit(MISUSED, f"{self.prog}: {printable(message)}. See {self.prog} --help.\n")


def parser():
    """Return the parser of the command; `shtab` reads it to complete commands in a shell."""
    main_parser = _Parser(
        prog="highway-keras",
        description="Highway networks in Keras: train, evaluate and use the networks of "
        '"Training Very Deep Networks" (Srivastava et al., 2015).',
        epilog="A run that downloads nothing: highway-keras fit thin-highway-10 --dataset digits",
        allow_abbrev=False,
    )
    main_parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = main_parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name, function, summary, family=commands):
        one = family.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        one.add_argument("--debug", action="store_true", help="show the traceback of an error")
        one.set_defaults(function=function)
        return one

    networks.add_list(add)
    fit.add_fit(add)
    networks.add_commands(add)
    search.add_search(add)
    reproduce.add_experiments(add, commands)
    return main_parser
