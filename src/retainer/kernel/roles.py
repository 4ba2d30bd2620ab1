"""Roles: what the users of an account may do, in the console and through their keys."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, get_args

from msgspec import Meta

from retainer.store.tx import Actor

Role = Annotated[
    Literal["admin", "manager", "member"],
    Meta(title="UserRole"),
    "An `admin` can do everything, a `manager` what concerns records and reports. "
    "A `member` can change only their own time and expenses, and sees no cost of colleagues.",
]
Area = Literal["work", "records", "reports", "costs", "settings", "people", "keys", "webhooks", "requests", "audit"]
EVERYTHING: frozenset[Area] = frozenset(get_args(Area))
ROLES: Mapping[str, frozenset[Area]] = MappingProxyType(
    {
        "admin": EVERYTHING,
        "manager": frozenset({"work", "records", "reports", "costs"}),
        "member": frozenset({"work"}),
        "operator": EVERYTHING,
        "client": frozenset(),
    }
)
"""What each role may do; `docs/roles.md` says what the areas are. Operators and clients are no users.

Operators run commands. Clients come with a link to one document."""
OF_SCOPES: Mapping[str, Area] = MappingProxyType({"webhooks": "webhooks"})
"""The areas of scopes, by their resource: a key has these scopes only while its user's role includes the area."""


def may(actor: Actor, area: Area) -> bool:
    return area in ROLES[actor.role]


def allows(role: str, scope: str) -> bool:
    area = OF_SCOPES.get(scope.partition(":")[0])
    return area is None or area in ROLES[role]
