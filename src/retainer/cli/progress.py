"""Progress bars of long commands."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bars

from retainer.backup import Progress


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Show a bar for each part of a block's work, on a terminal only."""
    tasks: dict[str, TaskID] = {}
    columns = (TextColumn("{task.description:<12}"), BarColumn(), TaskProgressColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bars:

        def show(part: str, done: int, total: int) -> None:
            if part not in tasks:
                for task in tasks.values():
                    bars.update(task, completed=1, total=1)
                tasks[part] = bars.add_task(part, total=total or None)
            bars.update(tasks[part], completed=done)

        yield show
