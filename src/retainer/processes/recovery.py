"""Recovery: the database of a server that was killed is checked before another one serves it."""

import shlex
from datetime import UTC, datetime

from retainer.backup.schedule import backups_until
from retainer.settings import Settings
from retainer.store.engines import Engine
from retainer.store.engines.base import Unavailable

DAMAGED = (
    "The last server of {} did not end cleanly, and the database is damaged: {}. It is not served, because each write "
    "could damage more. Nothing was changed. Copy the file and its -wal to another place, then restore a backup: "
    "retainer restore --force {}"
)


def check_structure(engine: Engine, settings: Settings) -> None:
    """Raise Unavailable if the database is damaged, with the command that restores the newest scheduled backup."""
    damage = engine.damage(thorough=False) if engine.exists() else []
    if damage:
        raise Unavailable(DAMAGED.format(engine.location, damage[0].rstrip("."), newest_backup(settings)))


def newest_backup(settings: Settings) -> str:
    if settings.backup_dir is not None and settings.database_path is not None:
        made = backups_until(datetime.now(UTC), settings.database_path, settings.backup_dir)
        if made:
            return shlex.quote(str(made[max(made)]))
    return "FILE"
