"""The command that copies an installation from one database into another."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from retainer import settings
from retainer.cli.common import Json, say
from retainer.store.engines import connect

if TYPE_CHECKING:
    from retainer.copying import Progress


def address(text: str) -> str:
    """Read the address of a database."""
    try:
        return settings.database_address(text)
    except ValueError:
        form = "sqlite:///path/to/file.db or postgresql://user:password@host/name"
        raise typer.BadParameter(f"takes {form}") from None


Source = Annotated[
    str | None,
    typer.Option("--from", parser=address, metavar="ADDRESS", help="What to copy; the database of the settings."),
]
Target = Annotated[
    str, typer.Option("--to", parser=address, metavar="ADDRESS", help="Where to: a new or empty database.")
]


def copy(*, source: Source = None, target: Target, json: Json = False) -> None:
    """Copy everything into another database, of either kind, then compare both; it succeeds whole or not at all.

    Stop the servers of the source first: what they write after the copy began is not in it.
    """
    from retainer import copying  # noqa: PLC0415  # other commands need none of this

    first, second = connect(source or settings.load().database), connect(target)
    with progress_bars() as progress:
        copied = copying.copy(first, second, progress)
    first.close()
    say({"from": first.location, "to": second.location, **copied._asdict(), "differences": 0}, json=json)


@contextmanager
def progress_bars() -> Iterator["Progress"]:
    """Show a bar for each part of the work, on a terminal only, until the block ends."""
    columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bars:

        def show(what: str, done: int, total: int) -> None:
            task = next((task.id for task in bars.tasks if task.description == what), None)
            if task is None:
                task = bars.add_task(what, total=total)
            bars.update(task, completed=done)

        yield show
