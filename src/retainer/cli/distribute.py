"""The command that distributes the tables of a Citus cluster."""

from retainer import settings
from retainer.cli.common import Json, say, warn
from retainer.schema import distribution
from retainer.schema.migrations import migrate
from retainer.store.engines import connect


def distribute(*, json: Json = False) -> None:
    """Distribute the tables over the nodes of a Citus cluster by account, or those that are not distributed yet.

    All or nothing. Every table that is moved is locked until the end, so stop the servers first.
    """
    engine = connect(settings.load().database)
    migrate(engine, warn)
    say({"database": engine.location, **distribution.distribute(engine)._asdict()}, json=json)
    engine.close()
