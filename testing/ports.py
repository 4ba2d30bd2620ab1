"""Ports for servers that tests and benches start."""

import atexit
import contextlib
import socket

RESERVED = contextlib.ExitStack()
"""The sockets that keep ports until this process ends."""
atexit.register(RESERVED.close)


def free_port() -> int:
    """Return a port that no other process gets while this one runs, at any loopback address.

    A socket that is bound but does not listen keeps the port. A server listens beside it, because both set
    SO_REUSEADDR (socket(7)). It is bound to all addresses, because the launcher of Valkey refuses a port that a
    client uses at another one, such as 127.0.0.99.
    """
    reserved = RESERVED.enter_context(socket.socket())
    reserved.bind(("", 0))
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after bind: two such sockets share no port
    return int(reserved.getsockname()[1])
