"""Makes records with handlers of the API, so that the demo follows its rules, and sets the clock of the demo."""

import random
import tomllib
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec

from retainer.crm.clients import Client
from retainer.kernel.body import Patch, RequestBody
from retainer.store.tx import Tx
from retainer.values.exact import as_instant, utcnow
from retainer.values.reading import read_record
from retainer.work.project_types import Project

FOLDER = Path(__file__).parent
WORKING_HOUR = time(9, 30, tzinfo=UTC)
S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


CONTENT = read("content")
"""What both agencies have: tags, types of projects, descriptions of time entries, questions of clients, expenses."""


def at(tx: Tx, day: date) -> None:
    tx.now = min(as_instant(datetime.combine(day, WORKING_HOUR)), utcnow())


def make(model: type[S], **fields: Any) -> S:
    """Return a record of a model with these fields. Raises `validation_failed`."""
    return read_record(model, fields)


def create(handler: Callable[..., T], tx: Tx, *ids: int, **fields: Any) -> T:
    return handler(tx, *ids, read_record(_body_type(handler), fields))


def change(handler: Callable[..., T], tx: Tx, *ids: int, **fields: Any) -> T:
    (model,) = get_args(_body_type(handler))
    return handler(tx, *ids, Patch(tx, RequestBody(fields, model, "Update")))


@lru_cache(maxsize=64)
def _body_type(handler: Callable[..., object]) -> Any:
    *_, body, _returned = get_type_hints(handler).values()
    return body


class DemoProject(NamedTuple):
    """A project with the dates, the people and the tasks of its work."""

    project: Project
    start: date
    end: date
    team: list[int]
    tasks: list[int]


class Scene:
    """An agency while it is filled: its transaction, its people and clients, and what they have begun."""

    def __init__(self, tx: Tx, rng: random.Random) -> None:
        self.tx, self.rng = tx, rng
        self.today = date.fromisoformat(tx.today)
        self.people = [tx.actor.user_id]
        self.clients: list[Client] = []
        self.jobs: list[DemoProject] = []

    def ago(self, days: int) -> date:
        """Set the clock back by a number of days, and return that day."""
        day = self.today - timedelta(days=days)
        at(self.tx, day)
        return day
