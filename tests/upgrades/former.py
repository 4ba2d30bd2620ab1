"""Databases of former deliveries, what their own servers answered, and the differences that are meant.

They lie in `releases/`, where `make former` adds one, and the first two beside the repository, in ../shared/upgrade.
Where these are missing, their tests fail, unless RETAINER_TEST_WITHOUT names `former`.
"""

import contextlib
import csv
import json
import lzma
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.databases import PostgresqlDatabases
from tests.length import first
from tests.skips import require

BESIDE = Path(__file__).parents[3] / "shared" / "upgrade"
RELEASES = Path(__file__).parent / "releases"


class Former(NamedTuple):
    """A database of a former delivery: the demo of that commit, an hour or so after it was made."""

    commit: str
    revision: str
    """What its tables are now, as `fingerprint` names it."""
    clock: str
    """When its own server was asked."""
    key: str
    """Of an admin of its first account, with all scopes."""
    is_beside: bool = False
    """Whether its files lie beside the repository."""
    runs_here: bool = True
    """Whether its program runs with the packages of this version; 8cdca1b needs others."""

    def __str__(self) -> str:
        return self.commit


def releases() -> Iterator[Former]:
    """Return the databases in the repository, the oldest first."""
    with (RELEASES / "releases.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            yield Former(row["commit"], row["revision"], row["read_at"], row["key"])


FORMER = (
    Former(
        *("8cdca1b", "0018-8cdca1b", "2026-11-27T10:30:00Z", "rtn_ZNNdqFRPgkqHK3uueLnDgSQHzeObXaam2k4xzJ"),
        is_beside=True,
        runs_here=False,
    ),
    Former(*("34ec5ed9", "0018", "2026-11-28T10:30:00Z", "rtn_H3BEnIsS742W6FxD1L3LSoTkmVecfdwx11LhKA"), is_beside=True),
    *releases(),
)
"""Each landing that changes tables adds one: CONTRIBUTING.md, "Releases"."""


class Difference(NamedTuple):
    """A field that an upgraded database may show otherwise than its own server did; the changelog names it, too."""

    commits: tuple[str, ...]
    path: str
    """The kind of record and the field: `event/fields`."""
    reason: str
    but: str = ""
    """A pattern of the parts of a text that may differ; without one, all of it may."""
    keeps: str = ""
    """A pattern of what a text must still have."""

    def covers(self, former: Former, path: str, before: object, after: object) -> bool:
        if former.commit not in self.commits or path != self.path:
            return False
        same = re.compile(self.but, re.DOTALL)
        is_same = not self.but or same.sub("", str(before)) == same.sub("", str(after))
        plain = str(before).replace("\u200b", "")  # places to break, which could be copied
        kept = set(re.findall(self.keeps, plain)) <= set(re.findall(self.keeps, str(after)))
        return is_same and (not self.keeps or kept)


AMOUNT = r"\d[\d.,]*[.,]\d\d\b"
ASKS = (
    *(
        "Account",
        "holder",
        "Commerzbank",
        "COBADEFFXXX",
        "Reference",
        "Please",
        "account",
        "accept",
        "signature",
        "nothing",
    ),
    *(
        "Kontoinhaber",
        "Verwendungszweck",
        "Bitte",
        "Zahlbar",
        "überweisen",
        "Rechnungsbetrag",
        "bezahlen",
        "Scannen",
        "dieses",
    ),
    *("Unterschrift", "anzunehmen", "senden", "unterschreiben", "zurück", "deduct", "discount"),
)
"""Words of what is no longer asked for, besides those of its dates."""
MONTHS = (
    "January",
    "February",
    "August",
    "September",
    "October",
    "November",
    "December",
    "Januar",
    "Februar",
    "Oktober",
    "Dezember",
)
LONG_WORD = rf"\b(?!(?:{'|'.join((*ASKS, *MONTHS))})\b)[A-Za-zÄÖÜäöüß]{{6,}}\b"
DIFFERENCES = (
    Difference(
        ("8cdca1b",),
        "event/fields",
        "events also name the computed fields that change with what was written, and refund_due is new",
    ),
    Difference(("34ec5ed9",), "event/fields", "events name document_version, which is new"),
    *(
        Difference(("8cdca1b", "34ec5ed9"), path, "what is left of the fixed fees of completed projects is to bill")
        for path in ("projects unbilled-work/rows/subtotal", "projects unbilled-work/rows/left_out")
    ),
    *(
        Difference(("8cdca1b", "34ec5ed9"), path, "what is to bill counts whenever the work was done")
        for path in ("report/money/unbilled_time", "report/money/unbilled_expenses", "report/rows")
    ),
    *(
        Difference(
            *(("34ec5ed9",), f"{kind} pdf", "a paper says what has become of its document, and asks for less"),
            keeps=rf"{AMOUNT}|(?:INV|Q)-2026-\d+|{LONG_WORD}",
        )
        for kind in ("invoices", "quotes", "credit-notes")
    ),
    Difference(
        *(("34ec5ed9",), "invoices xml", "a void invoice has no e-invoice but that of its first version"),
        but=r"^<\?xml.*<ram:ID>INV-2026-0084</ram:ID>.*|^A void invoice has no e-invoice.*",
    ),
)
BASE = re.compile(r'https?://[^/" ]+(?=/api/public/v1)')


each_former = pytest.mark.parametrize("former", FORMER, ids=str)
ENGINES = first(["sqlite", "postgresql"])
each_engine = pytest.mark.parametrize("kind", ENGINES)


def release_file(commit: str, end: str) -> Path:
    return RELEASES / f"{commit}.{end}.xz"


def content(former: Former, end: str) -> bytes:
    return lzma.decompress(release_file(former.commit, end).read_bytes())


def content_beside(former: Former, end: str) -> bytes:
    require("former", BESIDE.is_dir(), f"There is no {BESIDE}.")
    return lzma.decompress((BESIDE / f"{former.commit}.{end}.xz").read_bytes())


def write_sqlite(former: Former, file: Path) -> Path:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.touch(mode=0o600)
    if former.is_beside:
        file.write_bytes(content_beside(former, "db"))
    else:
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.executescript(content(former, "sqlite.sql").decode())
    return file


def create(former: Former, kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Create a former database; return its address."""
    if kind == "sqlite":
        return f"sqlite:///{write_sqlite(former, folder / 'data' / 'retainer.db')}"
    databases: PostgresqlDatabases = request.getfixturevalue("postgresql_databases")
    url = databases.create()
    fill_postgresql(former, url)
    return url


def fill_postgresql(former: Former, url: str) -> None:
    """Run a dump in an empty database, as psql would."""
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        dump = content_beside(former, "sql") if former.is_beside else content(former, "postgresql.sql")
        for kind, text in parts_of(dump.decode()):
            if kind == "copy":
                head, _, rows = text.partition("\n")
                with cursor.copy(head.encode()) as copy:
                    copy.write(rows)
            else:
                cursor.execute(text.encode())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")


def parts_of(dump: str) -> Iterator[tuple[str, str]]:
    """Return the statements of a dump, and each COPY with its rows."""
    rest = re.sub(r"(?m)^(--.*|\\(?:un)?restrict .*)\n", "", dump)
    for part in re.split(r"(?m)(^COPY [^;]+;\n(?:.*\n)*?\\\.\n)", rest):
        if part.startswith("COPY "):
            yield "copy", part.removesuffix("\\.\n")
        elif part.strip():
            yield "statements", part


def recorded(former: Former) -> dict[tuple[str, str, int], Any]:
    found = content_beside(former, "jsonl") if former.is_beside else content(former, "jsonl")
    return numbered(json.loads(BASE.sub("", line)) for line in found.decode().splitlines())


def numbered(lines: Iterator[list[Any]] | Any) -> dict[tuple[str, str, int], Any]:
    """Return what was read by its kind and name, and the place among lines of the same name."""
    found: dict[tuple[str, str, int], Any] = {}
    for kind, name, value in lines:
        place = 0
        while (kind, str(name), place) in found:
            place += 1
        found[kind, str(name), place] = value
    return found


def differences(before: dict[Any, Any], after: dict[Any, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Return what has changed, by its path: not fields that are new."""
    for key in before.keys() | after.keys():
        if key not in before or key not in after:
            yield key[0], key, before.get(key), after.get(key)
            continue
        for path, former, now in compared(key[0], before[key], after[key]):
            yield path, key, former, now


def compared(path: str, former: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(former, dict) and isinstance(now, dict) and former.keys() <= now.keys():
        for name in former:
            yield from compared(f"{path}/{name}", former[name], now[name])
    elif isinstance(former, list) and isinstance(now, list) and len(former) == len(now):
        for each, other in zip(former, now, strict=True):
            yield from compared(path, each, other)
    elif former != now:
        yield path, former, now
