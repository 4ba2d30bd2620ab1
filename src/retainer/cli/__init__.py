"""The command line."""

import errno
import sys
from typing import Annotated

import typer
from sqlalchemy.exc import DBAPIError

from retainer import __version__
from retainer.backup import BackupError
from retainer.cli.accounts import account_cli, api_cli
from retainer.cli.billing import document_cli, payment_cli
from retainer.cli.common import PlainGroup, connected, option_name
from retainer.cli.databases import database_cli
from retainer.cli.examine import examining_cli
from retainer.cli.exports import export_cli
from retainer.cli.imports import import_cli
from retainer.cli.jobs import job_cli, stopping_cli
from retainer.cli.keys import key_cli
from retainer.cli.logs import audit_cli, request_cli
from retainer.cli.operate import operating_cli
from retainer.cli.users import session_cli, user_cli
from retainer.cli.webhooks import webhook_cli
from retainer.errors import NoSuchRecord, Refusal
from retainer.settings import SettingsError
from retainer.store.engines import Engine, driver_errors
from retainer.store.engines.base import Busy, DiskFull, OutcomeUnknown, Unavailable, WrongStatement, one_line, refused

cli = typer.Typer(
    name="retainer",
    cls=PlainGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the help in boxes shortens the names of options where they need the room
)


def show_version(is_asked: bool) -> None:  # noqa: FBT001  # the form of an option's callback
    if is_asked:
        print(f"retainer {__version__}")
        raise typer.Exit


@cli.callback()
def root(
    *,
    version: Annotated[  # its callback has printed it
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Retainer: the back office of an agency behind one API."""


for group in (
    *(
        operating_cli,
        examining_cli,
        database_cli,
        document_cli,
        export_cli,
        account_cli,
        api_cli,
        user_cli,
        session_cli,
    ),
    *(key_cli, audit_cli, payment_cli, webhook_cli, import_cli, job_cli, stopping_cli, request_cli),
):
    cli.add_typer(group)


EXPECTED: tuple[type[Exception], ...] = (Refusal, SettingsError, BackupError, Unavailable, OSError, DBAPIError)
MEGABYTE = 1_000_000
LISTED = ("account", "user", "key", "session", "webhook")
"""The nouns of records that a command lists."""


def main() -> None:
    """Run a command; errors go to standard error with exit status 1, wrong usage with 2."""
    try:
        cli()
    except (*EXPECTED, *driver_errors()) as error:
        for line in sentences(error):
            print(line, file=sys.stderr)
        raise SystemExit(1) from None


def sentences(error: Exception) -> list[str]:
    """Return a line for each error; those of a field begin with its option."""
    if isinstance(error, Refusal) and "errors" in error.members:
        errors = [(name, text) for name, texts in error.members["errors"].items() for text in texts]
        is_whole = [text for _, text in errors] == [error.message]  # it is about the record, not about an option
        return [text if is_whole else f"{option_name(name.split('.')[0])}: {text}" for name, text in errors]
    if isinstance(error, NoSuchRecord) and error.noun in LISTED and error.typed_id is not None:
        listing = f"{error.noun} list{' ACCOUNT' * (error.noun != 'account')}"
        return [f"{error} The database is {connected().location}. See: retainer {listing}"]
    if isinstance(error, (DBAPIError, *driver_errors())):
        engine = connected()
        return [unavailable(refused(engine.translate_error(getattr(error, "orig", None) or error)), engine)]
    if isinstance(error, Unavailable) and error.__cause__ is not None:
        return [unavailable(error, connected())]
    if isinstance(error, FileExistsError | NotADirectoryError):
        return [f"{error.filename} is a file, and a folder is needed there. Name another, or move the file."]
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and not error.filename:
        return ["The disk is full. Nothing was changed: free space, then run the command again."]
    if isinstance(error, OSError) and error.filename:
        reason = str(error.strerror).lower()
        return [f"{error.filename} cannot be used: {reason}. Check its folder, its disk, and the rights of this user."]
    return [str(error)]


def unavailable(error: Unavailable, engine: Engine) -> str:
    database = engine.location
    if isinstance(error, DiskFull):
        room = f" The work needs up to {-(-error.needed // MEGABYTE):,} MB." if error.needed else ""
        return f"The disk of {database} is full.{room} Nothing was changed: free space, then run the command again."
    if isinstance(error, WrongStatement):
        cause = one_line(error).rstrip(".")
        advice = "Nothing was changed: run retainer doctor, and report this as a defect."
        return f"The database {database} refused a statement: {cause}. {advice}"
    is_busy = isinstance(error, Busy)
    state = "was too busy" if is_busy else "cannot be used"
    cause = f"The database {database} {state}: {one_line(error).rstrip('.?')}."
    if isinstance(error, OutcomeUnknown):
        return f"{cause} The change may have been made: check this before you run the command again."
    if is_busy:
        return f"{cause} Nothing was changed: run the command again in a moment."
    return f"{cause} Nothing was changed: check {engine.hint}, then run the command again."
