"""The scope matrix: the scopes of a key by resource and level, and presets for common integrations."""

from typing import NamedTuple

from retainer.console.page_context import PageContext
from retainer.identity.keys.keys import SCOPE_RESOURCES, SCOPES

READ = tuple(scope for scope in SCOPES if scope.endswith(":read"))
COVERED = {
    "clients": "Clients, contacts and tags",
    "projects": "Projects, milestones and templates",
    "tasks": "Tasks",
    "time": "Time entries",
    "invoices": "Quotes, invoices, payments and credit notes",
    "expenses": "Expenses",
    "tickets": "Tickets and replies",
    "sites": "Sites, plugins and uptime",
    "webhooks": "Webhooks and their deliveries",
    "reports": "All reports",
}


class Row(NamedTuple):
    """A resource, its contents, and its scopes; reports have no write scope."""

    name: str
    covers: str
    read: str
    write: str | None


class Preset(NamedTuple):
    """Scopes for a common integration."""

    name: str
    title: str
    scopes: tuple[str, ...]


PRESETS = (
    Preset("read", "Read everything", READ),
    Preset("time", "Time tracking", ("clients:read", "projects:read", "tasks:read", "time:read", "time:write")),
    Preset(
        "billing",
        "Billing",
        (
            *("clients:read", "projects:read", "time:read"),
            *("invoices:read", "invoices:write", "expenses:read", "expenses:write"),
        ),
    ),
    Preset("reporting", "Reporting", ("clients:read", "projects:read", "reports:read")),
)


def matrix() -> list[Row]:
    names = [*SCOPE_RESOURCES, *(scope.partition(":")[0] for scope in SCOPES if scope.startswith("reports"))]
    return [
        Row(name, COVERED[name], f"{name}:read", f"{name}:write" if f"{name}:write" in SCOPES else None)
        for name in names
    ]


def chosen(context: PageContext, held: list[str] | None = None) -> set[str]:
    """Return the selected scopes: those of a preset, else the sent ones, else those that the key holds."""
    for preset in PRESETS:
        if context.typed.text("preset") == preset.name:
            return set(preset.scopes)
    is_typed = bool(context.form.texts) or "scopes" in context.query
    return set(context.typed.texts_of("scopes") if is_typed else held or [])
