"""Distribution: where the rows of each table are when Citus distributes a database over several servers.

All rows of an account are on one node. Accounts and users are on every node, because statements join them with rows of
an account. Tables that are small and must accept writes while a node is down are on the coordinator alone.
"""

from sqlalchemy.exc import DBAPIError

from retainer.schema import identity
from retainer.store.engines import Engine
from retainer.store.engines.base import Unavailable
from retainer.store.engines.citus import place_tables, placed_tables
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
    with engine.schema_change() as connection:
        if placed_tables(connection) is None:
            advice = "Create the extension citus in PostgreSQL, and add its nodes; docs/citus.md shows how."
            raise Unavailable(f"{engine.location} is not on a Citus cluster. {advice}")
        try:
            moved = place_tables(connection, [*map(str, DISTRIBUTED)], [*map(str, ON_EVERY_NODE)])
        except DBAPIError as error:
            reason = str(error.orig).strip()
            raise Unavailable(f"{engine.location}: Citus refused, and nothing was changed: {reason}") from None
    numbers = {"distributed": len(DISTRIBUTED), "on_every_node": len(ON_EVERY_NODE)}
    return {"moved": moved, **numbers, "on_coordinator": len(ON_COORDINATOR)}
