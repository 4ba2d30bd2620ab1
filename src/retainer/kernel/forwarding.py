"""The address of the client and the public address of the server, behind proxies."""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from wsgiref.types import WSGIEnvironment

from retainer.settings import Settings

Address = IPv4Address | IPv6Address
NODE = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<four>[0-9.]+))(?::[0-9]+)?")
MAX_HOST_LENGTH, MAX_ADDRESS_LENGTH = 262, 64
HOST = re.compile(r"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


@lru_cache(maxsize=256)
def is_host(text: str) -> bool:
    return len(text) <= MAX_HOST_LENGTH and HOST.fullmatch(text) is not None


class Hop(NamedTuple):
    """What a proxy reports of a client: its address, and the scheme and host of its request."""

    address: str
    scheme: str = ""
    host: str = ""


def client_address(environ: WSGIEnvironment, settings: Settings) -> Address | None:
    """Return the client's address: the peer, or what trusted proxies report; None if that is malformed."""
    return _client(environ, settings)[0]


def group(address: Address | None) -> str:
    """Return the address as the rate limit counts it: for IPv6, the /64 network."""
    return networks(address)[0]


def networks(address: Address | None) -> tuple[str, ...]:
    """Return the address as limits count it; for IPv6, the networks of a customer (/64) and of a site (/48)."""
    if address is not None and address.version == 6:
        return tuple(str(ip_network(f"{address}/{length}", strict=False)) for length in (64, 48))
    return (str(address),)


def origin(environ: WSGIEnvironment, settings: Settings) -> str:
    """Return the public address of the server, without a trailing slash. Trusted proxies may name another host."""
    if settings.base_url:
        return settings.base_url
    scheme, host = environ["wsgi.url_scheme"], environ.get("HTTP_HOST", "")
    if settings.trusted_proxies:
        hop = _client(environ, settings)[1]
        scheme = hop.scheme if hop.scheme in {"http", "https"} else scheme
        host = hop.host if is_host(hop.host) else host
    return f"{scheme}://{host if is_host(host) else 'localhost'}"


def _client(environ: WSGIEnvironment, settings: Settings) -> tuple[Address | None, Hop]:
    """Return the last address that is not a trusted proxy, and the hop in which a proxy reported it."""
    peer, hop = parse_address(environ.get("REMOTE_ADDR", "")), Hop("")
    if settings.trusted_proxies:
        hops = _forwarded if settings.proxy_header == "Forwarded" else _x_forwarded
        for reported in reversed(hops(environ)):
            if not is_trusted(peer, settings):
                break
            peer, hop = parse_address(reported.address), reported
    return peer, hop


def _x_forwarded(environ: WSGIEnvironment) -> list[Hop]:
    scheme, host = environ.get("HTTP_X_FORWARDED_PROTO", ""), environ.get("HTTP_X_FORWARDED_HOST", "")
    return [Hop(address.strip(), scheme, host) for address in environ.get("HTTP_X_FORWARDED_FOR", "").split(",")]


def _forwarded(environ: WSGIEnvironment) -> list[Hop]:
    """Return the elements of Forwarded (RFC 7239), the nearest proxy last; malformed ones have no address."""
    hops = []
    for element in environ.get("HTTP_FORWARDED", "").split(","):
        pairs = (pair.partition("=") for pair in element.split(";"))
        parameters = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
        node = NODE.fullmatch(parameters.get("for", ""))
        address = (node["six"] or node["four"]) if node else ""
        hops.append(Hop(address, parameters.get("proto", ""), parameters.get("host", "")))
    return hops


def is_trusted(peer: Address | None, settings: Settings) -> bool:
    return peer is not None and any(peer in network for network in settings.trusted_proxies)


def parse_address(text: str) -> Address | None:
    """Parse an address; an IPv4-mapped IPv6 address becomes IPv4. None for other text."""
    return _parse(text) if len(text) <= MAX_ADDRESS_LENGTH else None


@lru_cache(maxsize=4096)
def _parse(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
