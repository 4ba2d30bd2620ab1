"""Names: the addresses of a host, from the hosts file or the name servers, without a thread and within a time limit."""

import asyncio
import errno
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest
from pathlib import Path

from dns.asyncresolver import Resolver
from dns.exception import DNSException
from dns.resolver import NoResolverConfiguration

from retainer.outbound.guard import spelled_address

HOSTS = Path("/etc/hosts")
NAME_SERVERS = Path("/etc/resolv.conf")
LIFETIME = 5
"""Time limit for all name servers together, in seconds."""
OVERLOADED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL}
"""Errors of a system without files, memory or local ports: no host is to blame."""


async def look_up(host: str) -> Iterable[str]:
    """Return the addresses of a host; none if it has none, or no name server has answered.

    The system's own look-up (getaddrinfo) blocks a thread for as long as a name server is silent. Raises OSError if
    this process is overloaded: `is_own`.
    """
    name = host.rstrip(".").lower()
    if spelled := spelled_address(name):
        return [str(spelled)]
    if local := _from_hosts_file(name):
        return local
    v4, v6 = await asyncio.gather(_ask(host, "A"), _ask(host, "AAAA"))
    # In turns, as only the first few are tried, and one of the families may lead nowhere.
    return [address for address in chain.from_iterable(zip_longest(v4, v6)) if address]


def _from_hosts_file(name: str) -> list[str]:
    lines = HOSTS.read_text(errors="replace").lower().splitlines() if HOSTS.exists() else ()
    rows = [line.partition("#")[0].split() for line in lines if name in line]
    return [address for address, *names in filter(None, rows) if name in (each.rstrip(".") for each in names)]


async def _ask(host: str, kind: str) -> list[str]:
    try:
        answer = await _resolver().resolve(host, kind, lifetime=LIFETIME, search=True)
    except DNSException as error:
        for *_, cause, _ in error.kwargs.get("errors", ()):
            if is_own(cause):
                raise cause from None
        return []
    return [record.address for record in answer]


def _resolver() -> Resolver:
    try:
        return Resolver(str(NAME_SERVERS))
    except (NoResolverConfiguration, ValueError):
        resolver = Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]  # the default of resolv.conf(5)
        return resolver


def causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def is_own(error: BaseException) -> bool:
    return any(isinstance(each, OSError) and each.errno in OVERLOADED for each in causes(error))
