"""Progress of long work, as bars on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from retainer.background import Progress


@contextmanager
def progress_bars() -> Iterator[Progress]:
    from rich.console import Console  # noqa: PLC0415  # a server needs no bars
    from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn  # noqa: PLC0415
    from rich.progress import Progress as Bars  # noqa: PLC0415

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
