"""Commands that write, check and restore backups."""

import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from retainer import settings
from retainer.backup import BackupError, postgresql
from retainer.cli.common import Json, say
from retainer.cli.progress import progress_bars
from retainer.outbound import pause
from retainer.store.engines import Sqlite
from retainer.store.engines.files import make_local_folder

if TYPE_CHECKING:
    from retainer.backup.restore import Restorable

STANDARD_OUTPUT = Path("-")

Written = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; - is standard output.")]
Read = Annotated[Path, typer.Argument(metavar="FILE", help="The backup to read.")]
Overwrite = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
Displace = Annotated[
    bool, typer.Option("--force", help="Replace a database with accounts; its file is kept under another name.")
]
Check = Annotated[bool, typer.Option("--check", help="Check that the backup can be restored; change nothing.")]


def backups(cli: typer.Typer) -> None:
    cli.command()(backup)
    cli.command()(restore)


def backup(file: Written, *, force: Overwrite = False, json: Json = False) -> None:
    """Write a consistent backup of the database to a file, even while the server runs."""
    from retainer.backup.create import create  # noqa: PLC0415  # other commands need none of this

    database = embedded_database(file).path
    if file != STANDARD_OUTPUT:
        with progress_bars() as progress:
            manifest = create(database, file, progress, force=force)
        say({"file": str(file), "bytes": file.stat().st_size, **msgspec.structs.asdict(manifest)}, json=json)
        return
    if json or sys.stdout.isatty():
        raise typer.BadParameter("the backup goes to standard output: redirect it, and omit --json")
    with tempfile.TemporaryDirectory() as folder, progress_bars() as progress:
        create(database, Path(folder) / "backup", progress)
        with (Path(folder) / "backup").open("rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)


def restore(file: Read, *, check: Check = False, force: Displace = False, json: Json = False) -> None:
    """Replace the configured database with a backup; its monitor and webhooks stay paused until you resume them.

    Sessions in the console end, and password links are void.
    """
    from retainer.backup import restore as restoring  # noqa: PLC0415

    engine = embedded_database(file)
    database = engine.path
    if check:
        data_dir = database.parent if database.parent.is_dir() else None
        with (
            tempfile.TemporaryDirectory(prefix=".retainer-check-", dir=data_dir) as folder,
            progress_bars() as progress,
        ):
            checked = restoring.check(file, Path(folder), progress)
        if checked.wrong_sums:
            raise BackupError(f"{file} can be restored. {repair(checked.wrong_sums)}")
        say(described(file, checked), json=json)
        return
    make_local_folder(database.parent)
    with engine.serve_alone(), progress_bars() as progress:
        restored, former = restoring.restore(file, database, progress, force=force)
    if restored.wrong_sums:
        typer.echo(repair(restored.wrong_sums), err=True)
    result = {"database": str(database), "former_database": None if former is None else str(former)}
    paused = {work.name: f"paused; resume with: retainer {work.command} --resume" for work in pause.EVERY}
    say({**result, **paused, **described(file, restored)}, json=json)


def embedded_database(file: Path) -> Sqlite:
    """Return the embedded database, and exit cleanly on SIGTERM. Raises BackupError with advice for PostgreSQL."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    loaded = settings.load()
    if loaded.database_path is None:
        raise BackupError(postgresql.advice(loaded.database, str(file)))
    return Sqlite(loaded.database_path)


def described(file: Path, checked: "Restorable") -> dict[str, object]:
    manifest = msgspec.structs.asdict(checked.manifest)
    migrated = None if checked.schema == checked.manifest.schema else checked.schema
    return {"file": str(file), **manifest, "migrated_to": migrated, "wrong_sums": checked.wrong_sums}


def repair(wrong_sums: list[str]) -> str:
    return f"Stored totals do not match their rows: {', '.join(wrong_sums)}. After restoring: retainer doctor --repair"
