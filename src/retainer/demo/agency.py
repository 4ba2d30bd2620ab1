"""Data of the demo, read from its files: two agencies with their people and clients, and what both work on."""

import tomllib
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from retainer.values.decoding import converter

FOLDER = Path(__file__).parent
S = TypeVar("S", bound=msgspec.Struct)


class Customer(msgspec.Struct):
    """A client of an agency, by the fields of the API, with its tags and the person to talk to."""

    fields: dict[str, str]
    address: dict[str, str]
    contact: dict[str, str]
    tags: list[str]
    is_archived: bool = False


class Agency(msgspec.Struct):
    """An agency: its account, people and clients."""

    name: str
    """The name of its domain, and of its logo, whose letters are outlines, which look the same without the font."""
    account: dict[str, str]
    people: list[dict[str, str]]
    customers: list[Customer]

    @property
    def domain(self) -> str:
        return f"{self.name}.example"

    @property
    def logo(self) -> bytes:
        return (FOLDER / f"{self.name}.svg").read_bytes()


class ProjectType(msgspec.Struct):
    """A type of project: how it is billed, how many days and hours it takes, its stages and tasks."""

    name: str
    billing_type: str
    days: int
    hours: int
    stages: list[str]
    tasks: list[str]


class Expense(msgspec.Struct):
    """What an agency spends: at least and at most these amounts."""

    category: str
    vendor: str
    description: str
    amounts: tuple[int, int]


class Content(msgspec.Struct):
    """What both agencies have: tags with their colours, internal projects, descriptions of time entries."""

    tags: dict[str, str]
    internal: list[str]
    work: list[str]
    project_types: list[ProjectType]
    plugins: list[dict[str, str]]
    """By slug and name, each with its newest version and an older one."""
    questions: list[dict[str, str]]
    """What clients ask in tickets, each with the agency's answer."""
    expenses: list[Expense]


def read(name: str, model: type[S]) -> S:
    found = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return cast("S", converter(model)(found))


NORTHLIGHT, HARBOUR = read("northlight", Agency), read("harbourpine", Agency)
CONTENT = read("content", Content)
