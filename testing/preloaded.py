"""Commands that begin as copies of a process that has loaded the product, and so spare half a second of the processor.

From its start on, a copy is a command like any other: its own process group, environment, files and exit status. What
depends on the loading itself is for starts with `python -m retainer`, as everywhere at full length.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO

MODULES = (
    *("retainer.cli", "retainer.app", "retainer.demo", "retainer.openapi.document", "retainer.rollups.doctor"),
    *("retainer.processes.workers", "retainer.processes.worker", "retainer.sites.monitor.probe"),
    *("retainer.store.engines.postgresql", "retainer.transfer.copying", "rich.console", "rich.progress"),
)
MAX_REQUEST = 1 << 17
NUMBER_BYTES = 4


class Process:
    """A copy: the part of `subprocess.Popen` that tests use."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.pid = number(link.recv(NUMBER_BYTES))
        self.lock = Lock()
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status once the process has ended. Raises TimeoutExpired."""
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("retainer", timeout or 0)
        return status

    def poll(self) -> int | None:
        """Return the exit status if the process has ended."""
        return self._status(0)

    def send_signal(self, which: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, which)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _status(self, timeout: float | None) -> int | None:
        with self.lock:
            if self.returncode is None and is_readable(self.link, timeout):
                self.returncode = os.waitstatus_to_exitcode(number(self.link.recv(NUMBER_BYTES)))
                self.link.close()
            return self.returncode


class Preloaded:
    """The process that is copied, started with the first copy; it ends with the process that uses it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.link: socket.socket | None = None

    def start(self, arguments: list[str], cwd: Path, env: Mapping[str, str], out: IO[bytes], err: IO[bytes]) -> Process:
        """Start a command."""
        request = json.dumps([arguments, str(cwd), dict(env)]).encode()
        ours, theirs = socket.socketpair()
        with self.lock, theirs:
            self.link = self.link or load()
            socket.send_fds(self.link, [request], [out.fileno(), err.fileno(), theirs.fileno()])
        return Process(ours)


def load() -> socket.socket:
    """Start the process that is copied; return the socket for requests."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RETAINER_", "PYTHON"))}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    with theirs:
        process = subprocess.Popen([sys.executable, "-m", __name__], stdin=theirs.fileno(), env=environment)

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def serve(link: socket.socket) -> list[str]:
    """Make a copy for each request, until the other side closes; in a copy, return the arguments of its command."""
    running: dict[int, tuple[int, int]] = {}  # by the descriptor of a process: its id, and where its status is told
    poll = select.poll()
    poll.register(link, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready != link.fileno():
                poll.unregister(ready)
                process_id, told = running.pop(ready)
                tell(told, os.waitpid(process_id, 0)[1])
                os.close(ready)
                os.close(told)
                continue
            request, descriptors, *_ = socket.recv_fds(link, MAX_REQUEST, 3)
            if not request:
                raise SystemExit
            out, err, told = descriptors
            process_id = os.fork()
            if not process_id:
                link.detach()
                return become(request, out, err, told)
            os.close(out)
            os.close(err)
            watched = os.pidfd_open(process_id)
            running[watched] = (process_id, told)
            poll.register(watched, select.POLLIN)


def become(request: bytes, out: int, err: int, told: int) -> list[str]:
    """Make this process what was asked for, and tell its id; return the arguments of its command."""
    arguments, folder, environment = json.loads(request)
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    tell(told, os.getpid())
    os.closerange(3, 1024)  # what belongs to other copies
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    return arguments


def is_readable(link: socket.socket, timeout: float | None) -> bool:
    """Wait until there is something to read; return whether there is."""
    poll = select.poll()
    poll.register(link, select.POLLIN)
    return bool(poll.poll(None if timeout is None else timeout * 1000))


def tell(descriptor: int, told: int) -> None:
    """Write a number, if somebody still listens."""
    with contextlib.suppress(BrokenPipeError):
        os.write(descriptor, told.to_bytes(NUMBER_BYTES))


def number(told: bytes) -> int:
    """Return the number in some bytes. Raises OSError if there are none."""
    if len(told) < NUMBER_BYTES:
        raise ConnectionError("The process that is copied has ended.")
    return int.from_bytes(told)


def rehearse() -> None:
    """Do once what copies do first: read the command line, compile templates and statements, migrate, answer."""
    import typer  # noqa: PLC0415  # it is loaded by now

    from retainer.cli import cli  # noqa: PLC0415
    from retainer.identity.accounts import list_accounts  # noqa: PLC0415
    from retainer.schema.migrations import migrate  # noqa: PLC0415
    from retainer.settings import BASE_PATH  # noqa: PLC0415
    from retainer.store.engines import connect  # noqa: PLC0415
    from retainer.web.pages import compile_templates  # noqa: PLC0415
    from testing.agencies import bare_request, open_agency, open_app  # noqa: PLC0415
    from testing.wsgi import wsgi  # noqa: PLC0415

    compile_templates("console")
    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(cli).make_context("retainer", ["doctor"])  # reading a first option loads pydantic
    with tempfile.TemporaryDirectory() as folder:
        engine = connect(f"sqlite:///{folder}/rehearsal.db")
        migrate(engine)
        engine.close()
        app = open_app(Path(folder) / "rehearsal.db")
        key = open_agency(app.store, "Rehearsal", "agency")["key"]
        list_accounts(app.store)
        for path in ("/me", "/clients", "/unknown"):
            sent = bare_request(app.settings, HTTP_AUTHORIZATION=f"Bearer {key}", PATH_INFO=f"{BASE_PATH}{path}")
            list(wsgi(app)(sent.environ, lambda *_: None))
        app.store.engine.close()  # copies close its file


def end_at_once(command: Callable[[], None]) -> None:
    """Run a command, and end with its status, but without dismantling what this process shares with other copies."""
    status = 0
    try:
        command()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> None:
    """Load the product, and run a command in each copy."""
    for name in MODULES:
        importlib.import_module(name)
    rehearse()
    gc.freeze()  # no collection of a copy writes to what the copies share
    link = socket.socket(fileno=0)
    from retainer.cli import main as run_command  # noqa: PLC0415  # it is loaded by now

    sys.argv = [str(Path(sys.modules["retainer"].__file__).with_name("__main__.py")), *serve(link)]
    end_at_once(run_command)


if __name__ == "__main__":
    main()
