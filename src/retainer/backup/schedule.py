"""The backup schedule of a server: backups at a fixed interval, of which the newest are kept."""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from retainer.background import Background, Chore, Report
from retainer.backup.create import create
from retainer.backup.embedded import is_empty
from retainer.backup.staging import BackupBusy, staging_dir

STAMP = "%Y%m%dT%H%M%SZ"
END = ".db.gz"
CLOCK_SECONDS = 60  # between two looks at the clock, at most: it may be set, and a machine may sleep
RETRY_SECONDS = 600
NICE = 10
STOP_SECONDS = 5  # for the current backup to be abandoned

Note = Callable[[Path, int], None]
"""Logs a backup, and its size in bytes."""


class ServerStopped(Exception):
    """The server ends: the current backup is abandoned."""


class Schedule(Background):
    """A thread of low priority that backs up a database at an interval, and deletes the oldest backups.

    The names of existing files decide when a backup is due, so a missed one is made at the start. Only files with the
    names of the schedule are counted and deleted. A database without accounts is not backed up.
    """

    def __init__(self, database: Path, folder: Path, every: timedelta, keep: int, note: Note, report: Report) -> None:
        self.database, self.folder, self.every, self.keep, self.note = database, folder, every, keep, note
        self._is_clean = False
        chore = Chore("backing up the database", CLOCK_SECONDS, self._work, max_pause=RETRY_SECONDS, at_once=True)
        super().__init__("backup", report, [chore], STOP_SECONDS)

    def _work(self) -> timedelta | None:
        if sys.platform == "linux":  # where each thread has a priority
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        with suppress(BackupBusy, ServerStopped):  # Busy: a command makes one
            return min(self._back_up_if_due(), timedelta(seconds=CLOCK_SECONDS))
        return None

    def _back_up_if_due(self) -> timedelta:
        if not self._is_clean:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            with staging_dir(self.folder):  # deletes leftovers of a killed process
                self._is_clean = True
        now = datetime.now(UTC).replace(microsecond=0)
        made = backups_until(now, self.database, self.folder)
        if made and (next_at := max(made) + self.every) > now:
            return next_at - now
        if is_empty(self.database):  # as when a disk is not mounted: its backups would push out the good ones
            return self.every
        file = self.folder / f"{self.database.stem}-{now.strftime(STAMP)}{END}"
        create(self.database, file, self._abandon_if_stopped)
        made[now] = file
        for moment in sorted(made)[: -self.keep]:
            made[moment].unlink()
        self.note(file, file.stat().st_size)
        return self.every

    def _abandon_if_stopped(self, *_: object) -> None:
        if self.stopped.is_set():
            raise ServerStopped


def backups_until(now: datetime, database: Path, folder: Path) -> dict[datetime, Path]:
    """Return the scheduled backups of a database, except those that a wrong clock has dated in the future."""
    made, prefix = {}, f"{database.stem}-"
    for file in folder.glob(f"{prefix}*{END}"):
        with suppress(ValueError):
            stamp = file.name.removeprefix(prefix).removesuffix(END)
            made[datetime.strptime(stamp, STAMP).replace(tzinfo=UTC)] = file
    return {moment: file for moment, file in made.items() if moment <= now}
