"""Ports for servers that tests and benches start."""

import socket

RESERVED: list[socket.socket] = []
"""Keep ports until this process ends."""


def free_port() -> int:
    """Return a loopback port that no other process gets while this one runs.

    A socket that is bound but does not listen keeps the port. A server listens beside it, because both set
    SO_REUSEADDR (socket(7)).
    """
    reserved = socket.socket()
    reserved.bind(("127.0.0.1", 0))
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after bind: two such sockets share no port
    RESERVED.append(reserved)
    return int(reserved.getsockname()[1])
