"""The command that copies an installation into another database."""

from typing import Annotated

import typer

from retainer import settings
from retainer.cli.common import Json, say
from retainer.cli.progress import progress_bars
from retainer.store.engines import connect


def address(text: str) -> str:
    try:
        return settings.database_address(text)
    except ValueError:
        form = "sqlite:///path/to/file.db or postgresql://user:password@host/name"
        raise typer.BadParameter(f"takes {form}") from None


Source = Annotated[
    str | None,
    typer.Option(
        "--from", parser=address, metavar="ADDRESS", help="The source.", show_default="the configured database"
    ),
]
Target = Annotated[
    str, typer.Option("--to", parser=address, metavar="ADDRESS", help="The target: a new or empty database.")
]


def copy(*, source: Source = None, target: Target, json: Json = False) -> None:
    """Copy everything into another database of either kind, all or nothing, and compare both.

    Stop the servers of the source first: later writes are not copied.
    """
    from retainer.transfer import copying  # noqa: PLC0415  # other commands need none of this

    first, second = connect(source or settings.load().database), connect(target)
    with progress_bars() as progress:
        copied = copying.copy(first, second, progress)
    first.close()
    say({"from": first.location, "to": second.location, **copied._asdict(), "differences": 0}, json=json)
