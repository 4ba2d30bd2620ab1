"""The engine on real files that fail and come back."""

import contextlib
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select

from retainer.schema.migrations import migrate
from retainer.schema.requests import idempotency_keys
from retainer.settings import SettingsError
from retainer.store.engines import Sqlite, connect
from retainer.store.engines.base import Unavailable
from retainer.store.tables import totals
from retainer.store.tx import Store
from tests.skips import require


@contextlib.contextmanager
def read_only(folder):
    """Make the folder and its files read-only until the block ends."""
    files = [folder, *folder.iterdir()]
    if os.geteuid() == 0:  # root ignores modes
        made = subprocess.run(["chattr", "+i", *files], check=False, capture_output=True)
        require("root", made.returncode == 0, "This file system knows no immutable files.")
        try:
            yield
        finally:
            subprocess.run(["chattr", "-i", *files], check=True)
    else:
        modes = [(path, path.stat().st_mode) for path in files]
        for path, mode in modes:
            path.chmod(mode & ~0o222)
        try:
            yield
        finally:
            for path, mode in modes:
                path.chmod(mode)


@pytest.fixture
def store(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    opened = Store(Sqlite(folder / "retainer.db"))
    migrate(opened.engine)
    opened.engine.close()
    yield opened
    opened.engine.close()


@pytest.fixture
def busy(store):
    """Another thread uses a connection, as in a busy server."""
    begun, ended = threading.Event(), threading.Event()

    def use():
        with store.unscoped() as tx:
            tx.value(select(func.count()).select_from(totals))
            begun.set()
            ended.wait(timeout=60)

    thread = threading.Thread(target=use)
    thread.start()
    assert begun.wait(timeout=10)
    yield
    ended.set()
    thread.join(timeout=10)


def read(store):
    with store.unscoped() as tx:
        return tx.value(select(func.count()).select_from(totals))


def write(store):
    with store.unscoped(write=True) as tx:
        tx.run(idempotency_keys.delete())


def test_a_write_succeeds_as_soon_as_the_files_can_be_written_again(store, busy):
    with read_only(store.engine.path.parent):
        assert read(store) == 0
        for _ in range(2):
            with pytest.raises(Unavailable):
                write(store)
        assert read(store) == 0
    write(store)


def test_connections_opened_while_the_files_were_read_only_are_replaced(store, busy):
    barrier = threading.Barrier(8)
    found = []

    def reads():
        with store.unscoped() as tx:
            barrier.wait(timeout=10)  # each has a connection of its own
            found.append(tx.value(select(func.count()).select_from(totals)))

    with read_only(store.engine.path.parent):
        threads = [threading.Thread(target=reads) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=20)
    assert found == [0] * 8
    for _ in range(20):
        write(store)


def test_a_missing_database_is_unavailable_and_not_created_until_it_is_back(store, tmp_path):
    assert read(store) == 0
    store.engine.close()
    away = shutil.move(store.engine.path.parent, tmp_path / "away")
    for folder_is_there in (False, True):
        if folder_is_there:
            store.engine.path.parent.mkdir()
        with pytest.raises(Unavailable):
            read(store)
        with pytest.raises(Unavailable):
            write(store)
        assert not store.engine.path.exists(), "no empty database replaces it"
    store.engine.path.parent.rmdir()
    shutil.move(away, store.engine.path.parent)
    write(store)
    assert read(store) == 0


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_was_moved_or_replaced_takes_no_write_until_it_is_back(store, is_replaced):
    write(store)
    path = store.engine.path
    away = path.rename(path.with_name("away.db"))
    if is_replaced:
        shutil.copy(away, path)
    for use in (write, read):
        with pytest.raises(Unavailable, match="was replaced" if is_replaced else "does not exist"):
            use(store)
    away.rename(path)
    write(store)
    assert read(store) == 0


def test_a_failed_write_does_not_block_the_next_one(store):
    def fail():
        with store.unscoped(write=True) as tx:
            tx.run(insert(totals).values(account_id=1, name="x", count=None))

    for _ in range(3):
        with pytest.raises(store.engine.driver.IntegrityError):
            fail()
        write(store)


def test_connections_are_reused(store):
    path = str(store.engine.path)
    before = open_files(path)
    for _ in range(10):
        thread = threading.Thread(target=read, args=(store,))
        thread.start()
        thread.join(timeout=10)
    assert open_files(path) - before == 1


def open_files(path):
    """Return how often this process has a file open."""
    return sum(str(link.resolve()) == path for link in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("address", ["postgresql://a b@host/x", "postgresql://host/x?no_such=1"])
def test_an_invalid_address_is_an_error_of_the_settings(address):
    with pytest.raises(SettingsError, match="address of the PostgreSQL database"):
        connect(address)
