"""The command `highway-keras`: arguments in, calls of the library, a table or a line out.

Keras takes seconds to import, so each command imports what it needs when it runs.
"""

import argparse
import errno
import os
import re
import shlex
import sys

from highway_keras.cli import experiments, predict, saved, search, training, zoo
from highway_keras.cli.shared import FAILED
from highway_keras.messages import printable
from highway_keras.version import __version__

USER_ERRORS = (ValueError, TypeError, OSError, ImportError)
MISUSED, INTERRUPTED = 2, 130
FULL = (errno.ENOSPC, errno.EDQUOT)


def main(arguments=None):
    """Run the command; return its exit code: 0, 1 failed, 2 misused, 130 interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack "±"
    options = parser().parse_args(arguments)
    try:
        code = options.handler(options) or 0
        print(end="", flush=True)  # here, since a failure at Python's exit cannot be caught
        return code
    except KeyboardInterrupt:
        return _end(INTERRUPTED, _how_to_resume(options, arguments))
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        _drop_unwritable()
        return 0
    except USER_ERRORS as error:
        code = FAILED if _is_of_full_disk(error) else MISUSED
        return _end(code, _with_flags(_text(error), options) or type(error).__name__)
    except RuntimeError as error:
        return _end(FAILED, _with_flags(str(error), options))


def _drop_unwritable():
    """Drop what stdout cannot take, which Python would try again at its exit and complain."""
    try:
        print(end="", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong with the arguments in one line, without the usage."""

    def parse_args(self, *arguments):
        options = super().parse_args(*arguments)
        for name, value in vars(options).items():
            if "" in (value if isinstance(value, list) else [value]):
                # For example an unset shell variable, which must not stand for the default.
                flag = options.parser.flags.get(name, name)
                self.error(f"argument {flag}: expected text, received ''")
        return options

    def error(self, message):
        self.exit(MISUSED, f"{self.prog}: {printable(message)}. See {self.prog} --help.\n")

    @property
    def flags(self):
        """The flag of each argument, by its name in the library."""
        return {a.dest: a.option_strings[-1] for a in self._actions if a.option_strings}


def _end(code, message):
    print(f"highway-keras: {printable(' '.join(message.split()))}", file=sys.stderr)
    _drop_unwritable()
    return code


def _is_of_full_disk(error):
    """Return whether a disk or a quota is full: the library's own errors name the system's."""
    return any(getattr(e, "errno", None) in FULL for e in (error, error.__cause__))


def _text(error):
    """Return an error's message, without the numbers of system errors."""
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror}."
    return str(error)


def _with_flags(message, options):
    """Return a message of the library with flags in place of arguments: --out for `out`."""
    for name, flag in options.parser.flags.items():
        message = message.replace(f"`{name}`", flag)
        message = re.sub(rf"\b{name}=True\b", flag, message)
        message = re.sub(rf"(?<!-set )(?<![\w/.-]){name}=(?=\S)", f"{flag} ", message)
    return message


def _how_to_resume(options, arguments):
    if not hasattr(options, "resume"):
        return "Interrupted."
    again = shlex.join(["highway-keras", *arguments, *([] if options.resume else ["--resume"])])
    return f"Interrupted. Nothing finished is lost; continue with: {again}"


def parser():
    """Return the parser of the command; `shtab` reads it to complete commands in a shell."""
    command = _Parser(
        prog="highway-keras",
        description="Highway networks in Keras: train, evaluate and use the networks of "
        '"Training Very Deep Networks" (Srivastava et al., 2015).',
        epilog="First steps without a network: highway-keras fit thin-highway-10 --dataset digits",
    )
    version = f"%(prog)s {__version__}"
    command.add_argument("--version", action="version", version=version)
    commands = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for family in (zoo, training, predict, saved, search, experiments):
        family.add_commands(commands)
    return command
