"""Commands on whole databases: backups, copies, and the distribution over a cluster."""

import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from retainer import settings
from retainer.background import Progress
from retainer.backup import BackupError, postgresql
from retainer.backup import restore as restoring
from retainer.cli import common as cli
from retainer.cli.progress import progress_bars
from retainer.outbound import pause
from retainer.schema import distribution
from retainer.schema.migrations import migrate
from retainer.store.engines import Sqlite, connect
from retainer.store.engines.files import is_served, make_local_folder

database_cli = typer.Typer()
STANDARD_OUTPUT = Path("-")
WORKS_AGAIN = "keys that were revoked, people who were deactivated, and accounts that were suspended since the backup"

Written = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; - is standard output.")]
Read = Annotated[Path, typer.Argument(metavar="FILE", help="The backup to read.")]
Overwrite = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
Displace = Annotated[
    bool, typer.Option("--force", help="Replace a database with accounts; its file is kept under another name.")
]
Check = Annotated[bool, typer.Option("--check", help="Check that the backup can be restored; change nothing.")]


@cli.command(database_cli)
def backup(file: Written, *, force: Overwrite = False, json: bool) -> dict[str, object] | None:
    """Write a consistent backup of the database to a file, even while the server runs."""
    from retainer.backup.create import create  # noqa: PLC0415  # other commands need none of this

    engine = embedded_database(file)
    cli.require_database(engine)
    database = engine.path
    if file != STANDARD_OUTPUT:
        with progress_bars() as progress:
            made = create(database, file, progress, force=force)
        return {"file": str(file), "bytes": file.stat().st_size, **msgspec.structs.asdict(made)}
    if json or sys.stdout.isatty():
        raise typer.BadParameter("The backup goes to standard output. Redirect it, and omit --json.")
    with tempfile.TemporaryDirectory() as folder, progress_bars() as progress:
        create(database, Path(folder) / "backup", progress)
        with (Path(folder) / "backup").open("rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)
    return None


@cli.command(database_cli)
def restore(file: Read, *, check: Check = False, force: Displace = False) -> dict[str, object]:
    """Replace the configured database with a backup; monitor, webhooks and mail stay paused until you resume them.

    Sessions in the console end, and password links are void.
    """
    engine = embedded_database(file)
    database = engine.path
    if check:
        data_dir = database.parent if database.parent.is_dir() else None
        with (
            tempfile.TemporaryDirectory(prefix=".retainer-check-", dir=data_dir) as folder,
            progress_bars() as progress,
        ):
            checked = restoring.check(file, Path(folder), examine, progress)
        if checked.wrong:
            raise BackupError(found_wrong(file, checked.wrong))
        return described(file, checked)
    make_local_folder(database.parent)
    with engine.serve_alone(), progress_bars() as progress:
        restored, former = restoring.restore(file, database, examine, progress, force=force)
    if restored.wrong:
        cli.warn(found_wrong(file, restored.wrong))
    result = {"database": str(database), "former_database": None if former is None else str(former)}
    return {**result, **paused_works(), "works_again": WORKS_AGAIN, **described(file, restored)}


def examine(engine: Sqlite, progress: Progress) -> list[str]:
    """Return what the doctor finds in the database of a backup. Raises BackupError for broken references."""
    from retainer.doctor.examination import examine_database  # noqa: PLC0415  # other commands need none of this

    outcomes = examine_database(engine, settings.load(), progress)
    for outcome in outcomes:
        if outcome.check == "references" and outcome.found:
            raise BackupError(f"{engine.location} holds no sound database: {outcome.found[0]} Take another backup.")
    return [line for outcome in outcomes for line in outcome.lines()]


def embedded_database(file: Path) -> Sqlite:
    """Return the embedded database, and exit cleanly on SIGTERM. Raises BackupError with advice for PostgreSQL."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    loaded = settings.load()
    if loaded.database_path is None:
        raise BackupError(postgresql.advice(loaded.database, str(file)))
    return Sqlite(loaded.database_path, is_limited=False)


def described(file: Path, checked: restoring.Restorable) -> dict[str, object]:
    migrated = None if checked.schema == checked.backup.schema else checked.schema
    found = msgspec.structs.asdict(checked.backup)
    return {"file": str(file), **found, "migrated_to": migrated, "wrong": checked.wrong}


def found_wrong(file: Path, wrong: list[str]) -> str:
    advice = "An older backup may be better. After restoring, retainer doctor --repair corrects stored totals."
    return "\n".join((f"{file} can be restored, but its data is not all right. {advice}", *wrong))


def address(text: str) -> str:
    try:
        return settings.database_address(text)
    except ValueError:
        form = "sqlite:///path/to/file.db or postgresql://user:password@host/name"
        raise typer.BadParameter(f"Must be {form}.") from None


Source = Annotated[
    str | None,
    typer.Option(
        "--from", parser=address, metavar="ADDRESS", help="The source.", show_default="the configured database"
    ),
]
Target = Annotated[
    str, typer.Option("--to", parser=address, metavar="ADDRESS", help="The target: a new or empty database.")
]

OnlyAccount = Annotated[
    int | None,
    typer.Option("--account", metavar="ID", parser=cli.number(), help="Copy this account alone.", show_default="all"),
]


@cli.command(database_cli)
def copy(*, source: Source = None, target: Target, account: OnlyAccount = None) -> dict[str, object]:
    """Copy everything, or one account, into another database of either kind, all or nothing, and compare both.

    Stop the servers of the source first, or suspend the account: later writes are not copied. Keys and passwords of an
    account that is copied alone work in the copy, too; nobody stays signed in, and sites, webhooks and mail are paused
    until you resume them. Messages that the source still sends are cancelled there.
    """
    from retainer.transfer import copying  # noqa: PLC0415  # other commands need none of this

    first, second = (connect(url, is_limited=False) for url in (source or settings.load().database, target))
    with progress_bars() as progress:
        rows = copying.copy(first, second, progress, account)
    if account is None and isinstance(first, Sqlite) and is_served(first.path):
        cli.warn(f"A server serves {first.location}: what it has written since is not in the copy.")
    first.close()
    copied: dict[str, object] = {"tables": len(copying.TABLES), "rows": rows, "differences": 0}
    if account is not None:
        copied |= {"account_id": account} | paused_works()
    return {"from": first.location, "to": second.location, **copied}


def paused_works() -> dict[str, object]:
    """Return what is paused in a database that is not the one that it comes from, and how it is resumed."""
    return {work.name: f"paused; resume with: retainer {work.command} --resume" for work in pause.EVERY}


@cli.command(database_cli)
def distribute() -> dict[str, object]:
    """Distribute the tables over the nodes of a Citus cluster by account, or those that are not distributed yet.

    All or nothing. Every table that is moved is locked until the end, so stop the servers first.
    """
    engine = cli.connected()
    migrate(engine, cli.warn)
    result = {"database": engine.location, **distribution.distribute(engine)}
    engine.close()
    return result
