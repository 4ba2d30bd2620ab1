"""Show that backups under load lose nothing: python -m bench.backups [--seconds N] [--every S] [--writers W].

Callers write without pause while a backup is made every S seconds. Each is restored into a folder of its own; what was
acknowledged before its command began must be in it, the doctor must find every sum right, and SQLite no fault. Beside
it the file of the database is copied as it lies there, to show what such a copy lacks. Also prints what a backup costs
the writers.
"""

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from testing.process import Server, running, tell, unsound, with_database
from testing.writing import Acknowledged, writing

from retainer.store.engines import Sqlite


@dataclass
class Made:
    """A backup: what was acknowledged before it, and when it was being made."""

    file: Path
    before: int
    began: float
    ended: float


def back_up(server: Server, folder: Path, acknowledged: Acknowledged, number: int) -> Made:
    """Copy the database's file as a careless operator would, then make a backup."""
    plain = folder / f"{number}.plain"
    plain.write_bytes(server.database.read_bytes())
    file = folder / f"{number}.db.gz"
    before, began = len(acknowledged.records), time.monotonic()
    server.tell("backup", file)
    return Made(file, before, began, time.monotonic())


def restored(made: Made, acknowledged: Acknowledged) -> tuple[int, list[object]]:
    """Restore a backup; return how many acknowledged writes it lacks, and what is wrong in it."""
    folder = made.file.with_suffix(".restored")
    folder.mkdir()
    tell(folder, "restore", made.file)
    tell(folder, "monitor", "--resume")
    drifted = tell(folder, "doctor")["drifted_summaries"]
    database = folder / "data" / "retainer.db"
    return len(acknowledged.missing(database, made.before)), [*unsound(database), *drifted]


def copied(made: Made, acknowledged: Acknowledged) -> str:
    """Return what the plain copy beside a backup lacks, and whether it shows."""
    plain = made.file.with_suffix("").with_suffix(".plain")
    try:
        is_sound = not unsound(plain)
        return f"{len(acknowledged.missing(plain, made.before))}, {'looks sound' if is_sound else 'is corrupt'}"
    except Sqlite.driver.DatabaseError as error:
        return str(error)


def percentiles(seconds: list[float]) -> str:
    """The median, the 99th percentile and the longest, in milliseconds."""
    ordered = [each * 1000 for each in sorted(seconds)] or [0]
    return f"{statistics.median(ordered):.1f} / {ordered[len(ordered) * 99 // 100]:.1f} / {ordered[-1]:.1f}"


def report(made: list[Made], acknowledged: Acknowledged) -> int:
    """Restore every backup and print a line for each; return how many things are wrong."""
    print("  backup seconds     MB    before  missing  wrong  a plain copy lacks")
    faults = 0
    for each in made:
        missing, wrong = restored(each, acknowledged)
        faults += missing + len(wrong)
        megabytes, number = each.file.stat().st_size / 1e6, each.file.name.split(".")[0]
        print(f"{number:>8}{each.ended - each.began:>8.1f}{megabytes:>7.1f}{each.before:>10,}", end="")
        print(f"{missing:>9}{len(wrong):>7}  {copied(each, acknowledged)}", flush=True)
    return faults


def costs(made: list[Made], acknowledged: Acknowledged) -> None:
    """Print how long writes took that began while a backup was made, and the others."""
    during, others = [], []
    for began, seconds in acknowledged.seconds:
        is_during = any(each.began <= began <= each.ended for each in made)
        (during if is_during else others).append(seconds)
    print(f"Writes, ms, median / 99% / longest: {percentiles(during)} beside backups, {percentiles(others)} otherwise")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=300)
    options.add_argument("--every", type=float, default=30)
    options.add_argument("--writers", type=int, default=8)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made: list[Made] = []
        with (
            running(with_database(folder / "live"), "--no-monitor") as server,
            writing(server, given.writers) as acknowledged,
        ):
            start = time.monotonic()
            while (due := start + (len(made) + 1) * given.every) <= start + given.seconds:
                time.sleep(max(0.0, due - time.monotonic()))
                made.append(back_up(server, folder, acknowledged, len(made)))
        faults = report(made, acknowledged)
        costs(made, acknowledged)
    print("As it should be." if made and not faults else f"{faults} things are wrong.")
    return 1 if faults or not made else 0


if __name__ == "__main__":
    sys.exit(main())
