"""The examination: all checks in their order, each with its outcome; and the repair of what follows from other rows."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec
from sqlalchemy import bindparam, or_

from retainer.background import Progress
from retainer.doctor import documents, events, references, series, stored_files, sums, surroundings, texts
from retainer.doctor.findings import Finding, Outcome
from retainer.identity.actors import OPERATORS, Person, operator
from retainer.rollups import doctor as recount
from retainer.schema import fingerprint, identity
from retainer.settings import Settings
from retainer.store.engines import Engine
from retainer.store.engines.base import ELSEWHERE, one_line
from retainer.store.engines.sql import INSTANT
from retainer.store.streams import UnreadableStream
from retainer.store.tx import Store, Tx

_erased_at = identity.accounts.c.deletes_at
UNERASED = OPERATORS.where(or_(_erased_at.is_(None), _erased_at > bindparam("moment", type_=INSTANT)))
"""The accounts that are looked at: one that is being erased has lost some of its rows already."""
ABSENT = "There is no database, see integrity."
UNREADABLE = "The database cannot be read, see integrity."
DAMAGED = "The database is damaged, see integrity."
UNKNOWN = "The schema is not the one of this version, see schema."


class AccountCheck(NamedTuple):
    name: str
    find: Callable[[Tx], Iterable[Finding]]


def account_checks(settings: Settings) -> list[AccountCheck]:
    return [
        AccountCheck("references", references.find_in_account),
        AccountCheck("documents", documents.find),
        AccountCheck("series", series.find),
        AccountCheck("events", lambda tx: events.find(tx, settings.event_days)),
        AccountCheck("files", stored_files.find),
        AccountCheck("texts", texts.find),
        AccountCheck("sums", sums.find),
    ]


REPAIRABLE = ("texts", "sums")
"""The checks whose findings follow from other rows, which must be right themselves."""


def examine(engine: Engine, settings: Settings, show: Progress, *, repair: bool = False) -> list[Outcome]:
    """Look at everything. With `repair`, correct texts and sums of accounts in which nothing else is wrong."""
    return [*_surroundings(engine, settings), *examine_database(engine, settings, show, repair=repair)]


def examine_database(engine: Engine, settings: Settings, show: Progress, *, repair: bool = False) -> list[Outcome]:
    """Look at a database alone, such as one that was restored; nothing is judged in one that is not known."""
    integrity, schema, clock = Outcome("integrity"), Outcome("schema"), Outcome("clock")
    checks = account_checks(settings)
    outcomes = {check.name: Outcome(check.name) for check in checks}
    every = [integrity, schema, clock, *outcomes.values()]
    reason = _why_not(engine, integrity, schema, show)
    if reason is not None:
        for outcome in every:
            if outcome.result == "ok" and outcome is not integrity:
                outcome.skip(reason)
        return every
    store = Store(engine)
    with store.unscoped() as tx:
        accounts = [operator(row) for row in tx.all(UNERASED, moment=tx.now)]
        _note(clock, lambda: surroundings.clock_behind(tx))
        _note(outcomes["references"], lambda: references.find_without_account(tx))
    for number, account in enumerate(accounts):
        counts = {}
        for check in checks:
            show(check.name.capitalize(), number, len(accounts))
            counts[check.name] = _note_account(store, account, check, outcomes[check.name])
        if repair and (counts["texts"] or counts["sums"]):
            others = [name for name, count in counts.items() if count != 0 and name not in REPAIRABLE]
            _repair(store, account, outcomes, others)
    if repair:
        _look_again(store, accounts, checks, outcomes)
    return every


def _why_not(engine: Engine, integrity: Outcome, schema: Outcome, show: Progress) -> str | None:
    """Look at the structure of a database and at its schema; return why nothing else can be judged."""
    try:
        if not engine.exists():
            integrity.skip(f"There is no database at {engine.location}. {ELSEWHERE}")
            return ABSENT
        show("Integrity", 0, 1)
        integrity.add(Finding(text) for text in engine.damage(thorough=True))
        fingerprint.check(engine)
    except fingerprint.UnknownSchema as error:
        schema.skip(str(error))
        return UNKNOWN
    except Exception as error:  # noqa: BLE001  # whatever it is, nothing can be judged
        integrity.skip(f"{engine.location} cannot be read: {one_line(error)}")
        return UNREADABLE
    return DAMAGED if integrity.count else None


def _surroundings(engine: Engine, settings: Settings) -> Iterator[Outcome]:
    checks: dict[str, Callable[[], Iterable[Finding]]] = {
        "valkey": lambda: surroundings.find_valkey(settings),
        "disk": lambda: surroundings.find_disk(engine, settings),
        "backups": lambda: surroundings.find_backups(Store(engine), settings),
    }
    for name, find in checks.items():
        outcome = Outcome(name)
        _note(outcome, find)
        if name == "backups" and outcome.result == "ok":
            outcome.note = surroundings.note_of_backups(settings)
        yield outcome


def _note_account(store: Store, account: Person, check: AccountCheck, outcome: Outcome) -> int | None:
    """Run a check in an account; return the number of findings, None if it could not be made."""

    def find() -> Iterator[Finding]:
        with store.begin(account, write=False) as tx:
            tx.snapshot()
            for finding in check.find(tx):
                yield msgspec.structs.replace(finding, account_id=account.account_id)

    return _note(outcome, find, f"Account {account.account_id}: ")


def _note(outcome: Outcome, find: Callable[[], Iterable[Finding]], where: str = "") -> int | None:
    try:
        return outcome.add(find())
    except (UnreadableStream, surroundings.Unreachable) as error:
        outcome.skip(f"{where}{error}")
    except Exception as error:  # noqa: BLE001  # a check that fails for whatever reason was not made, and says so
        outcome.skip(f"{where}{type(error).__name__}: {' '.join(str(error).split())}")
    return None


def _repair(store: Store, account: Person, outcomes: dict[str, Outcome], others: list[str]) -> None:
    """Correct texts and sums of an account; not if they follow from rows that are wrong or may be lost."""
    name, both = f"account {account.account_id}", [outcomes[each] for each in REPAIRABLE]
    if others:
        why = f"{name} was not repaired, because {', '.join(others)} are wrong there: correct or restore them first."
        for outcome in both:
            outcome.reason = outcome.reason or why
        return
    with store.begin(account, write=True) as tx:
        texts_written = [*texts.repair(tx)]
        lost = sums.missing_rows(tx)
        if not lost:
            names = recount.mismatched(tx)
            if names:
                recount.rebuild(tx)
            outcomes["sums"].repaired += [f"{each} of {name}" for each in names]
    outcomes["texts"].repaired += [f"{each} of {name}" for each in texts_written]
    if lost:
        outcomes["sums"].reason = f"{name} was not repaired: {', '.join(lost)}. Restore a backup, or report a bug."


def _look_again(store: Store, accounts: list[Person], checks: list[AccountCheck], outcomes: dict[str, Outcome]) -> None:
    """Examine again what was repaired, so that its outcome is that of now."""
    for check in checks:
        former = outcomes[check.name]
        if former.repaired:
            now = Outcome(check.name)
            for account in accounts:
                _note_account(store, account, check, now)
            former.result, former.found, former.count = now.result, now.found, now.count
            former.reason = now.reason or former.reason
