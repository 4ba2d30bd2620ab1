"""Ports for servers that tests and benches start."""

import atexit
import contextlib
import socket

RESERVED = contextlib.ExitStack()
"""The sockets that keep ports until this process ends."""
atexit.register(RESERVED.close)


def free_port() -> int:
    """Return a loopback port that no other process gets while this one runs.

    A socket that is bound but does not listen keeps the port. A server listens beside it, because both set
    SO_REUSEADDR (socket(7)).
    """
    reserved = RESERVED.enter_context(socket.socket())
    reserved.bind(("127.0.0.1", 0))
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after bind: two such sockets share no port
    return int(reserved.getsockname()[1])
