"""Distribution: where the rows of each table are when Citus distributes a database over several servers.

All rows of an account are on one node. Accounts and users are on every node, because statements join them with rows of
an account. Tables that are small and must accept writes while a node is down are on the coordinator alone.
"""

from retainer.schema import identity
from retainer.store.engines import Engine
from retainer.store.engines.citus import distribute_tables
from retainer.store.tables import metadata

ON_EVERY_NODE = (identity.accounts, identity.users)
"""A change reaches all nodes or none, so it fails while one is down."""
ON_COORDINATOR = (
    *(identity.pauses, identity.api_keys, identity.sessions),
    *(identity.second_factors, identity.password_links, identity.pending_sign_ins),
)
DISTRIBUTED = tuple(table for table in metadata.sorted_tables if table not in {*ON_EVERY_NODE, *ON_COORDINATOR})
"""By their account."""


def distribute(engine: Engine) -> dict[str, int]:
    """Distribute all tables that are not distributed yet, in one transaction. Raises Unavailable.

    Returns how many tables were moved now, and how many are where.
    """
    moved = distribute_tables(engine, [*map(str, DISTRIBUTED)], [*map(str, ON_EVERY_NODE)])
    numbers = {"distributed": len(DISTRIBUTED), "on_every_node": len(ON_EVERY_NODE)}
    return {"moved": moved, **numbers, "on_coordinator": len(ON_COORDINATOR)}
