"""Fixtures: two agencies on a real database, fresh for every test."""

import gc
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from testing import process
from testing.agencies import PATIENT_SECONDS
from testing.preloaded import Preloaded
from xdist.scheduler import LoadFileScheduling

from retainer.app import App
from retainer.console import site
from retainer.kernel import batch
from retainer.outbound import client
from retainer.settings import Settings
from retainer.sites.monitor.probe import TOTAL_SECONDS
from retainer.store.engines import postgresql_connection
from retainer.store.engines.base import TRANSACTION_SECONDS
from retainer.store.engines.postgresql_connection import SESSION
from tests import skips
from tests.browser import Browser, opened
from tests.citus import CitusDatabases, summarize
from tests.contract.filled_lists import Agency, fill
from tests.contract_checker import SCOPED, ContractChecker
from tests.databases import (
    CLUSTER,
    WITHOUT_CLUSTER,
    Databases,
    PostgresqlDatabases,
    SqliteDatabases,
    databases_of,
    path_of,
    postgresql,
)
from tests.factories import ApiClient
from tests.length import IS_FULL, IS_UNIT, length
from tests.valkey_process import ValkeyProcess

CONTRACT_CHECKER = ContractChecker()
SLOW_FILES = {
    *(
        "test_filters.py",
        "test_same_answers.py",
        "test_lists.py",
        "test_restore.py",
        "test_copying.py",
        "test_waits.py",
    ),
    *("test_in_a_browser.py", "test_month.py", "test_reference.py", "test_hostile.py", "test_hostile_console.py"),
    *("test_interrupted.py", "test_upgrades.py", "test_way_back.py"),
    *("test_sender.py", "test_life_of_money.py", "test_money.py", "test_conventions.py"),
    *("test_postgresql_outages.py", "test_limits_valkey.py", "test_mirror.py", "test_container.py", "test_parties.py"),
    *("test_billing_races.py", "test_einvoice.py", "test_connections.py", "test_statements.py", "test_durability.py"),
    *("test_fingerprint.py", "test_record_totals.py", "test_account_alone.py"),
}
"""The slowest files start first, so that no process runs one of them alone at the end."""
OF_SERVERS = (
    *("billing_races", "compression", "connections", "cursors", "hostile", "hostile_console", "life", "limits"),
    *("outside", "revocation", "slow_senders"),
)
OF_BROWSER = (
    *("blackbox/test_reference", "browser/test_month", "client_pages/test_in_a_browser"),
    "console/test_in_a_browser",
)
SHARING = {f"tests/blackbox/test_{name}.py": "servers" for name in OF_SERVERS}
SHARING |= {f"tests/{name}.py": "browser" for name in OF_BROWSER}
SHARING |= dict.fromkeys(("tests/contract/test_filters.py", "tests/console/test_lists.py"), "lists")
"""What tests of a file share with those of others; it takes seconds to start, so one process runs them all."""
settings.register_profile("chosen", max_examples=length(100), deadline=None)
settings.load_profile("chosen")
PROGRAMS = {"postgresql_databases", "valkey_process", "browser", "server", "two_servers"}
"""Fixtures that start another program, which the unit tier does not."""
OF_CLUSTER = Path(__file__).parent / "cluster"
MEMORY = Path("/dev/shm")
ROOM = 1 << 30


@pytest.fixture(scope="session")
def fast_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory, if there is room: most tests check responses, not durability."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        with tempfile.TemporaryDirectory(prefix="retainer-tests-", dir=MEMORY) as folder:
            yield Path(folder)
    else:
        yield tmp_path_factory.mktemp("databases")


@pytest.fixture
def fast_path(fast_disk: Path) -> Iterator[Path]:
    """A folder like `tmp_path`, on the fast disk, removed after the test."""
    with tempfile.TemporaryDirectory(dir=fast_disk) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def sqlite_databases(fast_disk: Path) -> SqliteDatabases:
    """SQLite files."""
    return SqliteDatabases(Path(tempfile.mkdtemp(dir=fast_disk)))


@pytest.fixture(scope="session")
def postgresql_databases(fast_disk: Path) -> Iterator[PostgresqlDatabases]:
    """Databases of a PostgreSQL server, which may be slow to answer on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retainer.store.engines.postgresql.CONNECT_SECONDS", TRANSACTION_SECONDS)
        patch.setattr(postgresql_connection, "REPLY_SECONDS", TRANSACTION_SECONDS)
        patch.setitem(SESSION, "statement_timeout", f"{TRANSACTION_SECONDS}s")
        with of_cluster() if CLUSTER else postgresql(fast_disk) as databases:
            yield databases


@contextmanager
def of_cluster() -> Iterator[PostgresqlDatabases]:
    databases = CitusDatabases(CLUSTER)
    yield databases
    STATEMENTS.append(databases.plans.table())
    databases.remove()


@pytest.fixture(scope="session", autouse=True)
def patient() -> Iterator[None]:
    """What runs in this process has the time that it takes on a busy machine: forms, batches and requests to hosts."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (batch, site):
            patch.setattr(module, "ATOMIC_SECONDS", PATIENT_SECONDS)
        patch.setattr(client, "CONNECT_SECONDS", TOTAL_SECONDS)
        patch.setattr(client, "STALL_SECONDS", process.PATIENCE)
        yield


@pytest.fixture(scope="session")
def valkey_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyProcess]:
    """A running Valkey, shared by tests that empty it first."""
    process = ValkeyProcess(tmp_path_factory.mktemp("valkey"))
    yield process
    process.kill()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser, shared by all tests of a process."""
    with opened(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture(scope="session")
def prototype(sqlite_databases: SqliteDatabases) -> tuple[Path, dict[str, Any]]:
    """The file of a migrated SQLite database with both agencies, to be copied, and their ids and keys."""
    return path_of(sqlite_databases.prototype), sqlite_databases.agencies


@pytest.fixture(scope="session")
def filled_lists(prototype: tuple[Path, dict[str, Any]], fast_disk: Path) -> Agency:
    """An account with many records, closed, to be copied (tests/contract/filled_lists.py)."""
    template, agencies = prototype
    return fill(Path(shutil.copy(template, fast_disk / "lists.db")), agencies)


@pytest.fixture(scope="module", autouse=True)
def swept() -> Iterator[None]:
    """Find what the tests of a file have left open at its end, so that the warning blames no test of another file.

    What is still used then, like compiled statements, stays: the next file does not examine it again.
    """
    yield
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Let commands begin as copies of a process that has loaded the product, whose lines coverage does not see."""
    config.pluginmanager.register(skips)
    process.PRELOADED = None if config.getoption("cov_source", None) else Preloaded()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage meanwhile: collecting makes a million objects, and leaves hardly one unused."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "both" in metafunc.fixturenames:
        metafunc.parametrize("both", databases_of(metafunc.definition), indirect=True)


@pytest.fixture
def both(request: pytest.FixtureRequest) -> Iterator[tuple[ApiClient, ApiClient]]:
    """Clients of both agencies of a fresh database. Fails if a statement was not limited to one account."""
    databases: Databases = request.getfixturevalue(f"{request.param}_databases")
    app = databases.open(databases.fresh())
    north, south = (
        ApiClient(app, CONTRACT_CHECKER, databases.agencies[name], databases) for name in ("north", "south")
    )
    yield north, south
    databases.close()
    SCOPED.check()


@pytest.fixture
def api(both: tuple[ApiClient, ApiClient]) -> ApiClient:
    """A client of the first agency."""
    return both[0]


@pytest.fixture
def other_tenant(both: tuple[ApiClient, ApiClient]) -> ApiClient:
    """A client of the other agency, on the same server."""
    return both[1]


@pytest.fixture
def unnamed(api: ApiClient) -> Iterator[ApiClient]:
    """The client on a server whose operator has set no public address: it is that of each request."""
    app = App(Settings(database_url=api.app.settings.database), io.BytesIO())
    yield api.on(app)
    app.store.engine.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-statements", action="store_true", help="write the table of statements again")
    parser.addoption("--write-examples", action="store_true", help="record the examples of the reference again")


class SharingScheduling(LoadFileScheduling):
    """Gives the tests of a file to one process, and those of files that share something to the same."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return SHARING.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharingScheduling:
    return SharingScheduling(config, log)


# A whole run at full length fails unless the tests have produced every documented response

CHOSEN = pytest.StashKey[bool]()  # whether -k, --deselect or the like left tests out
WHOLE: list[bool] = []  # for each process, whether it collected all tests
UNPRODUCED: list[tuple[str, str]] = []
STATEMENTS: list[dict[str, str]] = []  # for each process, how a cluster ran the statements of its tests


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what belongs to other tiers, and begin with the slowest files."""
    found = bool(items)
    items[:] = [item for item in items if _is_of_this_tier(item, set(getattr(item, "fixturenames", ())))]
    if found and not items:
        raise pytest.UsageError(f"None of these tests belongs to this tier. For tests/cluster, {WITHOUT_CLUSTER}.")
    items.sort(key=lambda item: item.path.name not in SLOW_FILES)


def _is_of_this_tier(item: pytest.Item, fixtures: set[str]) -> bool:
    is_of_cluster = item.path.parent == OF_CLUSTER
    has_database = "both" not in fixtures or databases_of(item)
    return bool(has_database) and not (is_of_cluster and not CLUSTER) and not (IS_UNIT and PROGRAMS & fixtures)


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        item.config.stash[CHOSEN] = True


def pytest_collection_finish(session: pytest.Session) -> None:
    files = {item.path for item in session.items}
    chosen = session.config.stash.get(CHOSEN, False) or session.config.option.collectonly
    tests = {path for path in Path(__file__).parent.rglob("test_*.py") if CLUSTER or path.parent.name != "cluster"}
    WHOLE.append(not chosen and files >= tests)
    gc.collect()
    gc.freeze()  # a collection that scans all tests holds up the threads of one for seconds on a busy machine


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["seen"] = json.dumps(sorted(CONTRACT_CHECKER.seen))
        output["whole"] = all(WHOLE)
        output["statements"] = STATEMENTS
    elif IS_FULL and WHOLE and all(WHOLE) and session.exitstatus == pytest.ExitCode.OK:
        UNPRODUCED.extend(CONTRACT_CHECKER.unproduced())
        if UNPRODUCED:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})
    CONTRACT_CHECKER.seen |= {(operation, status) for operation, status in json.loads(output.get("seen", "[]"))}
    WHOLE.append(output.get("whole", False))
    STATEMENTS.extend(output.get("statements", []))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if STATEMENTS:
        terminalreporter.section("Statements on the cluster")
        terminalreporter.write_line("\n".join(summarize(STATEMENTS)))
    if UNPRODUCED:
        terminalreporter.section("Documented responses that no test has produced", red=True, bold=True)
        terminalreporter.write_line("\n".join(" ".join(each) for each in UNPRODUCED))
