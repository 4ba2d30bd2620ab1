"""SSRF guard: which addresses the server may connect to.

Tenants enter the URLs, so the addresses of a host are checked before every connection, and the connection goes to the
checked address. Embedded IPv4 addresses are checked, too: Python calls `64:ff9b::7f00:1`, which is 127.0.0.1 behind
NAT64, global.
"""

import socket
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from retainer.settings import Network

Address = IPv4Address | IPv6Address

METADATA = (ip_network("169.254.0.0/16"), ip_network("fe80::/10"), ip_network("fd00:ec2::/32"))
"""Link-local addresses and those of cloud metadata: no setting allows them."""
NOT_PUBLIC = (
    *map(ip_network, ("192.0.0.0/24", "168.63.129.16/32", "fec0::/10", "3fff::/20", "5f00::/16", "100::/64")),
    *map(ip_network, ("2001::/23", "2002::/16")),
)
"""Networks that some versions of Python call global, and one that Azure uses internally."""
NAT64 = ip_network("64:ff9b::/96")
LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
EMBEDDING = (NAT64, LOCAL_NAT64, ip_network("::/96"), ip_network("::ffff:0:0:0/96"))
"""Networks whose last 32 bits are an IPv4 address (RFC 6052, RFC 8215, RFC 4291, RFC 2765)."""
ISATAP = {0x00005EFE, 0x02005EFE}  # precedes an IPv4 address in an interface identifier (RFC 5214)
ALL_ONES = 0xFFFFFFFF


class Forbidden(Exception):
    """The server must not connect to a host, or the host does not exist: callers do not learn which."""


def embedded(address: Address) -> Iterator[Address]:
    yield address
    if isinstance(address, IPv4Address):
        return
    last, middle = int(address) & ALL_ONES, int(address) >> 32 & ALL_ONES
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if any(address in network for network in EMBEDDING) or middle in ISATAP:
        yield IPv4Address(last)
    if address in LOCAL_NAT64:  # with a prefix of 48 bits, the IPv4 address lies around bits 64 to 71
        yield IPv4Address((int(address) >> 64 & 0xFFFF) << 16 | int(address) >> 40 & 0xFFFF)


def spelled_address(host: str) -> Address | None:
    """Return the address that a host spells, also in a short form like 127.1; None for a name."""
    if host == "localhost" or host.endswith(".localhost"):  # RFC 6761: always this machine
        return IPv4Address("127.0.0.1")
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def is_never_allowed(address: Address) -> bool:
    """Whether an address is link-local or of cloud metadata, whatever the operator has allowed."""
    return any(each in network for each in embedded(address) for network in METADATA)


def is_public(address: Address) -> bool:
    other = address.is_multicast or address.is_reserved or address.is_unspecified
    return address.is_global and not other and not any(address in network for network in NOT_PUBLIC)


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether the server may connect: to public addresses, and to networks that the operator has allowed."""
    if is_never_allowed(address):
        return False
    addresses = list(embedded(address))
    if any(address in network for network in allowed):
        return True
    mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    # A mapped or NAT64 address is only another spelling of the one within it.
    checked = addresses[1:] if mapped or address in NAT64 else addresses
    return all(is_public(each) or any(each in network for network in allowed) for each in checked)


def checked(addresses: Iterable[str], allowed: Sequence[Network]) -> list[str]:
    """Return the addresses of a host. Raises Forbidden when there are none, or one is not allowed."""
    try:
        found = list(dict.fromkeys(ip_address(address.split("%")[0]) for address in addresses))
    except ValueError:  # an invalid line of the hosts file
        raise Forbidden from None
    if not found or not all(is_allowed(address, allowed) for address in found):
        raise Forbidden
    return [str(address) for address in found]
