"""Compare how many writes SQLite takes with those of a former revision: python -m bench.writers --before REVISION.

Serves the working copy and a former revision of it, each on a database of its own, in turns: 16 writers and one alone,
on the disk as it is and with every flush made slower. Prints writes a second of both, and after / before, the median of
each round's ratio. Slow figures do not fail: the exit status is 0.

A flush is made slower by a library of five lines between SQLite and the kernel, which takes a C compiler. strace could
do it too (-e inject=fsync:delay_exit=2000), but it stops threads at other system calls as well: below it no server
comes to more than about 900 writes a second, with or without a delay.
"""

import argparse
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.data import describe, describe_time
from bench.load import drive
from bench.servers import RETAINER, Server, Stage, request, stage

WRITERS = (1, 16)
ROOT = Path(__file__).resolve().parent.parent
SLOW = r"""
#include <dlfcn.h>
#include <unistd.h>
static int slow(const char *name, int file)
{ int result = ((int (*)(int))dlsym(RTLD_NEXT, name))(file); usleep(DELAY); return result; }
int fsync(int file) { return slow("fsync", file); }
int fdatasync(int file) { return slow("fdatasync", file); }
"""


def slow_flushes(folder: Path, milliseconds: float) -> Path:
    """Make the library that lets every flush take longer."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise SystemExit("A C compiler is missing, which makes the library that slows flushes: apt install gcc.")
    source, library = folder / "slow.c", folder / "slow.so"
    source.write_text(SLOW, encoding="utf-8")
    options = ["-shared", "-fPIC", "-O2", "-D_GNU_SOURCE", f"-DDELAY={milliseconds * 1000:.0f}"]
    subprocess.run([compiler, *options, "-o", library, source, "-ldl"], check=True)
    return library


def writes(kind: str, keys: list[str]) -> Iterator[bytes]:
    """Creates of a kind without end, spread over the keys."""
    rng = random.Random(2)
    for number, key in enumerate(itertools.cycle(keys)):
        if kind == "tag":
            yield request("POST", "/tags", key, b'{"name":"Tag no. %d"}' % number)
        elif kind == "client":
            yield request("POST", "/clients", key, describe(rng, number))
        else:
            yield request("POST", "/time-entries", key, describe_time(rng))


def fill(former: Path, database: Path) -> list[str]:
    """Make the database as the former revision does, from which the working copy migrates its own; return the keys."""
    script = "import json, pathlib, sys, bench.data; print(json.dumps(bench.data.fill(pathlib.Path(sys.argv[1]))))"
    environment = os.environ | {"PYTHONPATH": f"{former / 'src'}:{former}"}
    command = [sys.executable, "-c", script, str(database)]
    made = subprocess.run(command, cwd=former, env=environment, check=True, stdout=subprocess.PIPE)
    keys: list[str] = json.loads(made.stdout)
    return keys


def rate(server: Server, kind: str, seconds: float, writers: int) -> float:
    """Writes a second in one turn, whose first tenth is not counted."""
    drive(server.port, server.requests[kind], seconds / 10, writers)
    began = time.perf_counter()
    return drive(server.port, server.requests[kind], seconds, writers) / (time.perf_counter() - began)


def compare(former: Path, place: Stage, library: Path | None, given: argparse.Namespace) -> None:
    """Serve both revisions beside each other, and print a line for each kind of write and number of writers."""
    keys = fill(former, place.folder / "made.db")
    for number, source in enumerate((former / "src", ROOT / "src")):
        (place.folder / str(number)).mkdir()
        database = Path(shutil.copy(place.folder / "made.db", place.folder / str(number) / "bench.db"))
        settings = [f"PYTHONPATH={source}", *([f"LD_PRELOAD={library}"] if library else [])]
        server = place.start(str(number), database, ["env", *settings, *RETAINER])
        server.requests = {kind: writes(kind, keys) for kind in given.kinds}
    for kind, writers in itertools.product(given.kinds, WRITERS):
        rounds = [[rate(each, kind, given.seconds, writers) for each in place.servers] for _ in range(given.rounds)]
        before, after = (statistics.median(side) for side in zip(*rounds, strict=True))
        ratio = statistics.median(later / former for former, later in rounds)
        named = f"{kind}, {writers} writer{'s' * (writers > 1)}" + (f", flushes + {given.delay} ms" * bool(library))
        print(f"{named:<40}{before:>10.0f}{after:>10.0f}{ratio:>14.2f}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--before", required=True, help="the revision that the working copy is compared with")
    options.add_argument("--delay", type=float, default=2.0, help="how many milliseconds longer a slow flush takes")
    options.add_argument("--kinds", nargs="+", default=["tag", "client", "time entry"], help="what is created")
    options.add_argument("--seconds", type=float, default=2.0, help="how long each server is measured at a time")
    options.add_argument("--rounds", type=int, default=5, help="how often each is measured on each server")
    given = options.parse_args()
    print(f"{'writes a second':<40}{'before':>10}{'after':>10}{'after/before':>14}")
    with tempfile.TemporaryDirectory() as made:
        former = Path(made) / "before"
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", former, given.before], check=True)
        try:
            for library in (slow_flushes(Path(made), given.delay), None):
                with stage() as place:
                    compare(former, place, library, given)
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", former], check=True)


if __name__ == "__main__":
    main()
