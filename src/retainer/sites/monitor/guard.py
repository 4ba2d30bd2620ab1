"""The guard: which addresses the monitor may connect to; told by the address alone, after the name was resolved.

Tenants name the sites, so what stands behind a name is judged before every connection, and the connection goes to the
address that was judged. IPv6 addresses that embed IPv4 ones are judged by those, too: Python's `is_global` calls
`64:ff9b::7f00:1`, which is 127.0.0.1 behind NAT64, global.
"""

import asyncio
import socket
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from retainer.settings import Network

Address = IPv4Address | IPv6Address

METADATA = (ip_network("169.254.0.0/16"), ip_network("fe80::/10"), ip_network("fd00:ec2::/32"))
"""Link-local addresses and those of cloud metadata: no setting opens them."""
NOT_PUBLIC = tuple(
    ip_network(its)
    for its in (
        "192.0.0.0/24",
        "168.63.129.16/32",
        "fec0::/10",
        "3fff::/20",
        "5f00::/16",
        "100::/64",
        "2001::/23",
        "2002::/16",
    )
)
"""What some versions of Python call global, and clouds keep for their own."""
NAT64 = ip_network("64:ff9b::/96")
LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
EMBEDDING = (NAT64, LOCAL_NAT64, ip_network("::/96"), ip_network("::ffff:0:0:0/96"))
"""Networks whose last 32 bits are an IPv4 address (RFC 6052, RFC 8215, RFC 4291, RFC 2765)."""
ISATAP = {0x00005EFE, 0x02005EFE}  # what stands before an IPv4 address in an interface identifier (RFC 5214)
ALL_ONES = 0xFFFFFFFF


class Forbidden(Exception):
    """The monitor must not connect there, or nothing is there; nobody is told which."""


def embedded(address: Address) -> Iterator[Address]:
    """An address, and the IPv4 addresses within it: mapped, 6to4, Teredo, NAT64, ISATAP."""
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
    if address in LOCAL_NAT64:  # where the prefix is as short as it may be, the address stands around bit 64
        yield IPv4Address((int(address) >> 64 & 0xFFFF) << 16 | int(address) >> 40 & 0xFFFF)


def is_public(address: Address) -> bool:
    """Whether an address is one of the public internet's: unicast, global, and nothing of the sort that is reserved."""
    other = address.is_multicast or address.is_reserved or address.is_unspecified
    return address.is_global and not other and not any(address in network for network in NOT_PUBLIC)


def is_allowed(address: Address, opened: Sequence[Network]) -> bool:
    """Whether the monitor may connect: to public addresses, and to networks that the operator has opened."""
    its = list(embedded(address))
    if any(one in network for one in its for network in METADATA):
        return False
    if any(address in network for network in opened):
        return True
    mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    judged = its[1:] if mapped or address in NAT64 else its  # the outer address is only a way to write the inner one
    return all(is_public(one) or any(one in network for network in opened) for one in judged)


async def resolve(host: str, port: int, opened: Sequence[Network]) -> list[str]:
    """The addresses of a host, all of which are allowed. Raises Forbidden, also when there are none."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(ip_address(str(place[0]).split("%")[0]) for *_, place in found))
    except (OSError, UnicodeError, ValueError):
        raise Forbidden from None
    if not addresses or not all(is_allowed(address, opened) for address in addresses):
        raise Forbidden
    return [str(address) for address in addresses]
