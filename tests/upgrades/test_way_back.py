"""The documented way back leads to what was there before an upgrade."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from testing.process import command, contents, tell

from retainer.schema import fingerprint
from tests.length import only_full
from tests.skips import require
from tests.upgrades.former import FORMER, Former, each_former, write_sqlite


def former_program(former: Former, folder: Path) -> dict[str, str]:
    """Unpack the program of a former delivery from the history; return the environment in which it runs."""
    root = Path(__file__).parents[2]
    packed = subprocess.run(["git", "archive", former.commit, "src"], cwd=root, check=False, capture_output=True)
    require("former", packed.returncode == 0, f"The history has no commit {former.commit}.")
    subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RETAINER_")}
    return kept | {"PYTHONPATH": str(folder / "src")}


@only_full
@pytest.mark.parametrize("former", [each for each in FORMER if each.runs_here], ids=str)
def test_the_documented_way_back_leads_to_the_former_database(former: Former, tmp_path: Path):
    program, database = tmp_path / "former", write_sqlite(former, tmp_path / "data" / "retainer.db")
    program.mkdir()
    environment = former_program(former, program)

    def formerly(*arguments: object) -> str:
        words = [sys.executable, "-m", "retainer", *map(str, arguments)]
        done = subprocess.run(words, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done
        return done.stdout

    before = contents(database)
    formerly("backup", "before.db.gz")
    assert command(tmp_path, "migrate", "--json").json["after"] == fingerprint.head()
    tell(tmp_path, "account", "set", 1, "--name", "Written by the new version")
    formerly("restore", "--force", "before.db.gz")
    ended = {"pauses", "sessions", "password_links", "sqlite_sequence"}
    after = contents(database)
    assert {name: rows for name, rows in after.items() if name not in ended} == {
        name: rows for name, rows in before.items() if name not in ended
    }
    for work in ("monitor", "deliver"):
        formerly(work, "--resume")
    assert re.search(r"(?m)^drifted_summaries: none$|^sums +ok", formerly("doctor")), "two ways to say so"
    assert len([*(tmp_path / "data").glob("retainer.before-restore-*.db")]) == 1


@only_full
@each_former
def test_a_backup_before_the_upgrade_is_the_former_database(former: Former, tmp_path: Path):
    database = write_sqlite(former, tmp_path / "data" / "retainer.db")
    before = contents(database)
    said = tell(tmp_path, "backup", "before.db.gz")
    assert said["schema"] == former.revision[:4]
    unpacked = tmp_path / "unpacked.db"
    unpacked.write_bytes(gzip.decompress((tmp_path / "before.db.gz").read_bytes()))
    assert contents(unpacked) == before
