"""Distribution: where the rows of each table are when Citus distributes a database over several servers.

All rows of an account are on one node. Accounts and users are on every node, because statements join them with rows of
an account. Tables that are small and must accept writes while a node is down are on the coordinator alone.
"""

from typing import NamedTuple

from retainer.schema import identity, installation
from retainer.store.engines import Engine
from retainer.store.engines.citus import distribute_tables
from retainer.store.tables import metadata

ON_EVERY_NODE = (identity.accounts, identity.users)
"""A change reaches all nodes or none, so it fails while one is down."""
ON_COORDINATOR = (
    *(installation.pauses, identity.api_keys, identity.sessions),
    *(identity.second_factors, identity.password_links, identity.pending_sign_ins),
)
DISTRIBUTED = tuple(table for table in metadata.sorted_tables if table not in {*ON_EVERY_NODE, *ON_COORDINATOR})
"""By their account."""


class Distribution(NamedTuple):
    """How many tables are where, and how many of them were moved now."""

    moved: int
    distributed: int
    on_every_node: int
    on_coordinator: int


def distribute(engine: Engine) -> Distribution:
    """Distribute all tables that are not distributed yet, in one transaction. Raises Unavailable."""
    moved = distribute_tables(engine, [*map(str, DISTRIBUTED)], [*map(str, ON_EVERY_NODE)])
    return Distribution(moved, len(DISTRIBUTED), len(ON_EVERY_NODE), len(ON_COORDINATOR))
