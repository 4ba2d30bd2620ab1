"""Surroundings: what a database needs around it: a right clock, room on the disk, Valkey, and fresh backups."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select

from retainer.backup.schedule import backups_until
from retainer.doctor.findings import Finding
from retainer.schema.identity import accounts
from retainer.settings import Settings, setting_text
from retainer.store.engines import Engine
from retainer.store.engines.files import free_bytes
from retainer.store.tables import ONCE, events, totals
from retainer.store.transaction import Transaction
from retainer.store.tx import Store
from retainer.values.exact import as_instant

TOLERANCE = timedelta(minutes=1)  # between the clocks of several servers
WAL_BYTES = 64 * 1024 * 1024
"""Room that SQLite needs next to a database while it is written."""
VALKEY_SECONDS = 2
OLDEST = select(func.min(accounts.c.created_at))
NEWEST = (
    select(events.c.at)
    .where(events.c.account_id == totals.c.account_id)
    .order_by(events.c.id.desc())
    .limit(1)
    .scalar_subquery()
)
NEWEST_EVENTS = select(totals.c.account_id, NEWEST).where(ONCE)
"""The moment of the newest event of each account."""


class Unreachable(Exception):
    """Something that a check needs cannot be reached; the message says why."""


def clock_behind(tx: Transaction) -> list[Finding]:
    """Return the accounts whose newest event is of a later moment than the clock shows."""
    now = datetime.now(UTC)
    latest = as_instant(now + TOLERANCE)
    found = []
    for account_id, at in tx.all(NEWEST_EVENTS):
        if at is not None and at > latest:
            what = f"The clock shows {as_instant(now)}, before the newest event ({at}). Set the clock."
            found.append(Finding(what, account_id=account_id))
    return found


def clock_warnings(store: Store) -> list[str]:
    """Return a warning for a server that starts with a clock that is behind."""
    with store.unscoped() as tx:
        found = clock_behind(tx)
    return [f"{found[0].what} Until then, documents and events get days of the past."] if found else []


def find_disk(engine: Engine, settings: Settings) -> Iterator[Finding]:
    path = settings.database_path
    if path is None:
        return
    if not engine.exists():
        raise Unreachable(f"There is no database at {engine.location}.")
    free, size = free_bytes(path.parent), engine.size()
    if free is None:
        raise Unreachable(f"The disk of {path.parent} does not say how much room it has.")
    if free < WAL_BYTES:
        yield Finding(f"The disk of {engine.location} has {free:,} bytes left; writes need {WAL_BYTES:,}.")
    if settings.backup_dir is None:
        return
    folder = settings.backup_dir if settings.backup_dir.exists() else settings.backup_dir.parent
    if not folder.is_dir():
        yield Finding(f"RETAINER_BACKUP_DIR is {settings.backup_dir}, and that folder does not exist.")
    elif (room := free_bytes(folder)) is not None and room < 2 * size:
        yield Finding(f"The disk of {folder} has {room:,} bytes left; a backup needs up to {2 * size:,}.")


def find_backups(store: Store, settings: Settings) -> Iterator[Finding]:
    """Yield whether the newest scheduled backup is older than twice its interval."""
    folder, path = settings.backup_dir, settings.database_path
    if folder is None or path is None:
        return
    now, every = datetime.now(UTC), timedelta(seconds=int(settings.backup_every * 3600))
    made = backups_until(now, path, folder)
    interval = f"there should be one every {setting_text(settings.backup_every)} hours"
    if made:
        newest = max(made)
        if now - newest > 2 * every:
            yield Finding(f"The newest backup in {folder} is of {as_instant(newest)}, and {interval}. See the log.")
        return
    if not store.engine.exists():
        raise Unreachable(f"There is no database at {store.engine.location}.")
    with store.unscoped() as tx:
        oldest = tx.value(OLDEST)
    if oldest is not None and datetime.fromisoformat(oldest) < now - every:
        yield Finding(f"There is no backup in {folder}, and {interval}. See the log of the server.")


def note_of_backups(settings: Settings) -> str | None:
    """Return that nothing makes backups by itself, if so."""
    if settings.database_path is None:
        return "Retainer makes no backups of PostgreSQL: schedule them with its own tools."
    return None if settings.backup_dir else "No backups are scheduled, because RETAINER_BACKUP_DIR is not set."


def find_valkey(settings: Settings) -> Iterator[Finding]:
    if not settings.valkey_url:
        return
    from retainer.kernel.limits_valkey import SharedWindow  # noqa: PLC0415  # its library is an extra

    reasons: list[str] = []
    window = SharedWindow(settings.valkey_url, reasons.append, timeout=VALKEY_SECONDS)
    if not window.is_shared:
        yield Finding(f"RETAINER_VALKEY_URL is {setting_text(settings.valkey_url)}. {reasons[0]}")
