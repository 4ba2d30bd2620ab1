"""Who calls, and under which address the API is known, when proxies stand in between."""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from retainer.settings import BASE_PATH, Settings

Address = IPv4Address | IPv6Address


def client_address(environ: Mapping[str, Any], settings: Settings) -> Address | None:
    """The caller's address: the peer, or what trusted proxies say of it; None when it is no address."""
    peer = parse_address(environ.get("REMOTE_ADDR", ""))
    for hop in reversed(environ.get("HTTP_X_FORWARDED_FOR", "").split(",")):
        if not is_trusted(peer, settings):
            break
        peer = parse_address(hop.strip())
    return peer


def group(address: Address | None) -> str:
    """The name under which an address is counted: an IPv6 caller has a whole /64 network."""
    if address is not None and address.version == 6:
        return str(ip_network(f"{address}/64", strict=False))
    return str(address)


def base_url(environ: Mapping[str, Any], settings: Settings) -> str:
    """The public address of the API, without a slash at the end; trusted proxies may name another host."""
    if settings.base_url:
        return settings.base_url + BASE_PATH
    scheme, host = environ["wsgi.url_scheme"], environ.get("HTTP_HOST") or "localhost"
    if settings.trusted_proxies and is_trusted(parse_address(environ.get("REMOTE_ADDR", "")), settings):
        scheme = environ.get("HTTP_X_FORWARDED_PROTO") or scheme
        host = environ.get("HTTP_X_FORWARDED_HOST") or host
    return f"{scheme}://{host}{BASE_PATH}"


def is_trusted(peer: Address | None, settings: Settings) -> bool:
    """Whether a peer is a proxy of ours."""
    return peer is not None and any(peer in network for network in settings.trusted_proxies)


def parse_address(text: str) -> Address | None:
    """An address from its text, IPv4 also when written as IPv6; None for anything else."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
