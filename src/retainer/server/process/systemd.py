"""systemd: the listening socket that it may hand over, and telling it when the server is ready."""

import os
import socket

FIRST_DESCRIPTOR = 3


def handed_over() -> socket.socket | None:
    """Return the listening socket of a socket unit, if the server was started by one (sd_listen_fds(3))."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS", "0") == "0":
        return None
    return socket.socket(fileno=FIRST_DESCRIPTOR)


def notify(state: str) -> None:
    """Tell systemd the state of the server, like READY=1 (sd_notify(3)); without systemd do nothing."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(state.encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)
