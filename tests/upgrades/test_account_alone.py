"""An account that is copied alone answers as before, and the copy has nothing of another one."""

import contextlib
import re
from pathlib import Path

import pytest
import time_machine
from sqlalchemy import select
from testing.process import command, tell

from retainer.outbound import pause
from retainer.rollups import doctor
from retainer.schema import metadata
from retainer.schema.identity import accounts, sessions
from retainer.schema.migrations import migrate
from retainer.store.engines import connect
from retainer.store.tx import Store
from tests.skips import find_program
from tests.upgrades.former import FORMER, Former, differences, each_engine, numbered
from tests.upgrades.reading import Reader

each_newest = pytest.mark.parametrize("former", FORMER[-1:], ids=str)
ALONE, OTHER = 1, 2
WORD = re.compile("[A-Za-z]{3}")


def everything(url: str, former: Former):
    with time_machine.travel(former.clock, tick=False), contextlib.closing(Reader(url, former)) as reader:
        return numbered(reader.all(lambda _, number: number % 10 == 0))


def texts_of(url: str, account_id: int) -> set[str]:
    """All texts with words of an account that are long enough to be its own."""
    found: set[str] = set()
    with contextlib.closing(connect(url)) as engine, engine.read_snapshot() as connection:
        for table in metadata.sorted_tables:
            if table is accounts or "account_id" in table.c:
                owner = table.c.id if table is accounts else table.c.account_id
                for row in connection.execute(select(table).where(owner == account_id)):
                    found |= {text for text in row if isinstance(text, str) and len(text) > 9 and WORD.search(text)}
    return found


@each_newest
@each_engine
def test_an_account_that_is_copied_alone_answers_as_before(former: Former, kind: str, url: str, tmp_path: Path):
    find_program("pdftotext")
    with contextlib.closing(connect(url)) as engine:
        migrate(engine, lambda _: None)
    file = tmp_path / "alone" / "studio.db"
    copied = tell(tmp_path, "copy", "--from", url, "--to", f"sqlite:///{file}", "--account", ALONE)
    assert (copied["account_id"], copied["differences"]) == (ALONE, 0)
    assert "retainer mail --resume" in copied["mail"]
    alone = f"sqlite:///{file}"
    before = everything(url, former)
    assert list(differences(before, everything(alone, former))) == []
    assert sum(name.endswith(" pdf") for name, *_ in before) > 10
    with contextlib.closing(connect(alone)) as engine:
        store = Store(engine)
        assert doctor.inspect(store, repair=False) == []
        assert len(pause.warnings(store)) == len(pause.EVERY), "nothing is sent"
        with engine.read_snapshot() as connection:
            assert connection.execute(select(accounts.c.id)).scalars().all() == [ALONE]
            assert connection.execute(select(sessions.c.id)).all() == []
    foreign, content = texts_of(url, OTHER) - texts_of(url, ALONE), file.read_bytes()
    assert len(foreign) > 200
    assert [text for text in foreign if text.encode() in content] == []


@each_newest
@each_engine
def test_an_account_that_does_not_exist_is_not_copied(former: Former, kind: str, url: str, tmp_path: Path):
    with contextlib.closing(connect(url)) as engine:
        migrate(engine, lambda _: None)
    file = tmp_path / "alone" / "studio.db"
    refused = command(tmp_path, "copy", "--from", url, "--to", f"sqlite:///{file}", "--account", "99")
    assert refused.status == 1
    assert "has no account 99" in refused.err
    assert not file.exists()
