"""The chief of a search that several processes share: leading them, and waiting for it."""

import contextlib
import os
import socket
import sys
import time
from concurrent import futures

from highway_keras.util import checks
from highway_keras.util.extras import extra

with extra("tune"):
    import grpc
    from keras_tuner.src import protos
    from keras_tuner.src.distribute.oracle_chief import OracleServicer

ADDRESS = {"KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT"}
SECONDS = 120  # for which a worker waits
PAUSE = 0.5  # between two attempts


def check_alone():
    """Raise a `ValueError` if this process shares a search, which others may go on with."""
    if ADDRESS & os.environ.keys():
        raise ValueError(
            "An experiment of the paper needs all of its searches in one process. Unset "
            "KERASTUNER_ORACLE_IP and KERASTUNER_ORACLE_PORT; `highway-keras search` shares one, "
            "and `reproduce figure1 --search` draws it."
        )


def check_variables():
    """Raise a `ValueError` if only some of keras-tuner's variables are set."""
    needed = ("KERASTUNER_ORACLE_PORT", "KERASTUNER_TUNER_ID")
    shares = ADDRESS & os.environ.keys()
    missing = [name for name in needed if name not in os.environ]
    if shares and missing:
        raise ValueError(
            f"Processes that share a search need {' and '.join(needed)}, each an id of its own; "
            f"without {' and '.join(sorted(shares))}, one searches alone. Missing: "
            f"{', '.join(missing)}."
        )


def address():
    """Return the chief's host and port from the environment."""
    port = os.environ["KERASTUNER_ORACLE_PORT"]
    port = int(port) if port.isdecimal() else port
    checks.integer("KERASTUNER_ORACLE_PORT", port, least=1, most=2**16 - 1)
    return os.environ["KERASTUNER_ORACLE_IP"], port


def check_port():
    """Raise a `ValueError` if this process cannot listen at the chief's address.

    keras-tuner's server would share the port with another one, and workers would go to either.
    """
    try:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # for a quick restart
            listener.bind(address())  # without listening: no worker is to take this for the chief
    except OSError as error:
        host, port = address()
        raise ValueError(
            f"The chief cannot listen on {host}:{port} ({error.strerror}). Set "
            "KERASTUNER_ORACLE_IP to an address of this machine and KERASTUNER_ORACLE_PORT to a "
            "free port, for the workers too, or wait for the search that has it."
        ) from error


def lead(oracle):
    """Hand out the trials of `oracle` until all have ended; raise what it failed with, if it did.

    keras-tuner's own chief lives on after an error, and its workers wait for ever.
    """
    servicer = OracleServicer(oracle)
    # One name, by which keras-tuner knows a thread that may go on after an error.
    thread = futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="chief")
    server = grpc.server(thread)
    protos.get_service_grpc().add_OracleServicer_to_server(servicer, server)
    server.add_insecure_port("{}:{}".format(*address()))
    server.start()
    try:
        # keras-tuner prints the conditions of hyperparameters whenever it sends them.
        with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink):
            while not servicer.stop_triggered or oracle.ongoing_trials or oracle.tuner_ids:
                if oracle.error:
                    raise oracle.error
                time.sleep(PAUSE)
    finally:
        server.stop(grace=5).wait()  # the last worker still hears that it is done


def outlive(work, is_over=lambda: False):
    """Call `work`; if the chief goes away, wait for it to come back and call `work` again.

    If it does not because `is_over()`, return `None`.
    """
    for _ in range(round(SECONDS / PAUSE)):
        try:
            return work()
        except grpc.RpcError as error:
            found = error
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                break
            time.sleep(PAUSE)
            if not wait(is_over):
                return None
    raise RuntimeError(
        f"The chief no longer answers, or has failed ({found.code().name}). End it if it still "
        "runs, start it again, and then this worker under the same id: the search continues."
    ) from found


def wait(is_over=lambda: False):
    """Wait until the chief listens, and return true, or false if `is_over()` meanwhile.

    Raises:
        RuntimeError: If the chief does not start in `SECONDS`.
    """
    host, port = address()
    end = None
    while end is None or time.monotonic() < end:
        try:
            socket.create_connection((host, port), timeout=PAUSE).close()
            return True
        except OSError:
            if is_over():
                return False
            if end is None:
                end = time.monotonic() + SECONDS
                print(f"Waiting up to {SECONDS} s for the chief on {host}:{port}.", file=sys.stderr)
            time.sleep(PAUSE)
    raise RuntimeError(
        f"No chief listens on {host}:{port} after {SECONDS} s. Start it there, with "
        "KERASTUNER_TUNER_ID=chief, and then this worker again."
    )
