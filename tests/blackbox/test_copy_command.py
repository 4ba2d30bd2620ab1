"""`retainer copy` as an operator runs it."""

import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from testing.agencies import open_agency
from testing.process import COMMAND, PATIENCE, Result, command, environment, opened, running, with_database

from tests.length import only_full


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an installation."""
    folder = with_database(tmp_path_factory.mktemp("copy"))
    with opened(folder / "data" / "retainer.db") as store:
        open_agency(store, "North", "agency")
    return folder


def on_terminal(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run a command whose standard error is a terminal; return its status and its output there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=environment(folder, TERM="xterm"), stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the process has closed the other end
                break
            shown += part
        process.communicate(timeout=PATIENCE)
    os.close(ours)
    return process.returncode, shown.decode()


def refused(folder: Path, *arguments: str, status: int = 1) -> str:
    result: Result = command(folder, "copy", *arguments, "--json")
    assert (result.status, result.out) == (status, ""), result
    assert "Traceback" not in result.err, result
    return re.sub(r"\s+", " ", result.err)


@only_full
def test_an_installation_moves_to_postgresql_and_back_and_is_served_there(folder, postgresql_databases):
    url = postgresql_databases.create()
    back = folder / "back" / "retainer.db"
    there = command(folder, "copy", "--to", url, "--json")
    assert (there.status, there.err) == (0, ""), there
    again = command(folder, "copy", "--from", url, "--to", f"sqlite:///{back}", "--json")
    assert (again.status, again.err) == (0, ""), again
    assert there.json["rows"] == again.json["rows"] > 0
    assert there.json["differences"] == 0
    assert again.json["to"] == str(back)
    for setting in (url, f"sqlite:///{back}"):
        doctor = command(folder, "doctor", "--json", RETAINER_DATABASE_URL=setting)
        assert doctor.status == 0, doctor
        accounts = command(folder, "account", "list", "--json", RETAINER_DATABASE_URL=setting)
        assert [account["name"] for account in accounts.json["accounts"]] == ["North"]
    assert back.stat().st_mode & 0o077 == 0
    postgresql_databases.discard(url)


def test_a_served_installation_can_be_copied(tmp_path):
    with running(with_database(tmp_path)) as server:
        server.agency("North", "agency")
        copied = command(tmp_path, "copy", "--to", f"sqlite:///{tmp_path / 'copy.db'}", "--json")
        assert copied.status == 0, copied
        assert "what it has written since is not in the copy" in copied.err
        server.agency("South", "agency")
    again = command(tmp_path, "copy", "--to", f"sqlite:///{tmp_path / 'again.db'}", "--json")
    assert (again.status, again.err) == (0, "")


@only_full
def test_the_progress_of_a_copy_is_shown_only_on_a_terminal(folder, tmp_path):
    status, shown = on_terminal(folder, "copy", "--to", f"sqlite:///{tmp_path / 'shown.db'}")
    assert status == 0, shown
    for part in ("Rows", "Indexes", "Comparing"):
        assert re.search(rf"{part}.*━", shown), shown
    quiet = command(folder, "copy", "--to", f"sqlite:///{tmp_path / 'quiet.db'}")
    assert quiet.err == "", quiet


def test_a_refusal_says_what_to_do(folder, tmp_path):
    filled = f"sqlite:///{folder / 'data' / 'retainer.db'}"
    assert "is not empty, it has accounts" in refused(folder, "--to", filled)
    missing = refused(folder, "--from", f"sqlite:///{tmp_path / 'none.db'}", "--to", f"sqlite:///{tmp_path / 'new.db'}")
    assert "there is nothing to copy" in missing
    assert "Must be sqlite:///path/to/file.db or postgresql://" in refused(folder, "--to", "mysql://x", status=2)
    nowhere = refused(folder, "--to", "postgresql://nobody:secret@127.0.0.1:1/none")
    assert "postgresql://nobody@127.0.0.1:1/none" in nowhere
    assert "secret" not in nowhere


def test_the_output_is_one_json_object(folder, tmp_path):
    done = command(folder, "copy", "--to", f"sqlite:///{tmp_path / 'one.db'}", "--json")
    assert set(json.loads(done.out)) == {"from", "to", "tables", "rows", "differences"}
