"""systemd: socket activation, and readiness notifications."""

import os
import socket

FIRST_DESCRIPTOR = 3


def handed_over() -> socket.socket | None:
    """Return the socket that a socket unit hands over, if any (sd_listen_fds(3))."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS", "0") == "0":
        return None
    return socket.socket(fileno=FIRST_DESCRIPTOR)


def notify(state: str) -> None:
    """Report the state of the server to systemd, if it runs, like READY=1 (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(state.encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)
