"""Addresses of PostgreSQL: of one server, or of several of which one is the primary."""

import itertools

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from retainer.settings import SettingsError

CONNECT_SECONDS = 2
"""Timeout of connecting to one server; the driver accepts no less."""
ALIVE = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
"""A commit may wait on a lost connection."""


def complete_address(url: str) -> str:
    """Return an address with our limits; of several servers, it means the one that takes writes.

    Raises SettingsError for an address that cannot be understood.
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        reason = str(error).strip()
        raise SettingsError(f"The address of the PostgreSQL database cannot be understood: {reason}.") from None
    limited = {**parts, **ALIVE, "connect_timeout": CONNECT_SECONDS}
    if "," in str(parts.get("host", "")):
        limited.setdefault("target_session_attrs", "read-write")
    return make_conninfo("", **{name: str(part) for name, part in limited.items()})


def public_address(url: str) -> str:
    """Return an address without the password and options."""
    parts = conninfo_to_dict(url)
    user = f"{parts['user']}@" if "user" in parts else ""
    hosts, ports = (str(parts.get(name, "")).split(",") for name in ("host", "port"))
    servers = (":".join(filter(None, each)) for each in itertools.zip_longest(hosts, ports, fillvalue=ports[0]))
    return f"postgresql://{user}{','.join(servers)}/{parts.get('dbname', '')}"
