"""The schedule of a serving process: backups at fixed distances, of which the newest are kept."""

import os
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from retainer.backup.create import create
from retainer.backup.embedded import is_empty
from retainer.backup.workplace import Busy, workplace

STAMP = "%Y%m%dT%H%M%SZ"
END = ".tar.gz"
LOOK = timedelta(minutes=1)  # at the clock, which may be set, on a machine that may sleep
RETRY = timedelta(minutes=10)
NICE = 10
STOP_SECONDS = 5


class Journal(Protocol):
    """Where it is written what became of backups."""

    def backup(self, file: Path, size: int) -> None:
        """Note a backup that was made."""

    def failure(self, what: str, error: Exception) -> None:
        """Note one that was not."""


class Stopped(Exception):
    """The process ends: the backup that is being made is given up."""


class Schedule:
    """Backs up a database in a thread of its own that gives way to others, and deletes what is no longer kept.

    When one is due follows from the names of those that are there, so that one that was missed is made at the start.
    Only files of the schedule's own names are counted and deleted. A database without accounts is not backed up.
    """

    def __init__(self, database: Path, folder: Path, every: timedelta, keep: int, journal: Journal) -> None:
        self.database, self.folder, self.every, self.keep, self.journal = database, folder, every, keep, journal
        self._is_clear = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="backup", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a backup that is being made is given up, and made at the next start."""
        self._stopped.set()
        self._thread.join(timeout=STOP_SECONDS)

    def _run(self) -> None:
        if sys.platform == "linux":  # where a thread has a priority of its own
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        wait = timedelta()
        while not self._stopped.wait(wait.total_seconds()):
            try:
                wait = min(self._back_up_if_due(), LOOK)
            except Busy:  # one is being made by hand
                wait = LOOK
            except Stopped:
                return
            except Exception as error:  # noqa: BLE001  # the server goes on, and an operator is told
                self.journal.failure("backing up the database", error)
                wait = min(self.every, RETRY)

    def _back_up_if_due(self) -> timedelta:
        """Make a backup if one is due; return how long it is until the next."""
        if not self._is_clear:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            with workplace(self.folder):  # what a killed process has left goes
                self._is_clear = True
        now = datetime.now(UTC).replace(microsecond=0)
        made = self._made_until(now)
        if made and (next_at := max(made) + self.every) > now:
            return next_at - now
        if is_empty(self.database):  # where a disk is not mounted, there is a new one: it would push out the good ones
            return self.every
        file = self.folder / f"{self._beginning}{now.strftime(STAMP)}{END}"
        create(self.database, file, self._give_up_when_stopped)
        made[now] = file
        for moment in sorted(made)[: -self.keep]:
            made[moment].unlink()
        self.journal.backup(file, file.stat().st_size)
        return self.every

    @property
    def _beginning(self) -> str:
        return f"{self.database.stem}-"

    def _made_until(self, now: datetime) -> dict[datetime, Path]:
        """Return the backups of this schedule; those that a wrong clock has dated in the future are left alone."""
        made = {}
        for file in self.folder.glob(f"{self._beginning}*{END}"):
            with suppress(ValueError):
                stamp = file.name.removeprefix(self._beginning).removesuffix(END)
                made[datetime.strptime(stamp, STAMP).replace(tzinfo=UTC)] = file
        return {moment: file for moment, file in made.items() if moment <= now}

    def _give_up_when_stopped(self, *_: object) -> None:
        if self._stopped.is_set():
            raise Stopped
