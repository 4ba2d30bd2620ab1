"""Actions on a site: pause and resume its monitoring, plan a maintenance, and check it now."""

from collections.abc import Iterator, Sequence
from typing import Any

from retainer.console.actions.action import Action, Seen
from retainer.console.editing.fields import Field, choose_fields
from retainer.console.page_context import PageContext
from retainer.errors import invalid
from retainer.schema.sites import sites
from retainer.sites.sites import SUSPENDED, Site
from retainer.sites.uptime import check_now
from retainer.store.tx import Tx

MAINTENANCE = choose_fields(Site, sites, "maintenance_until", use="Update")


class SiteAction(Action[Site]):
    """An action that changes how a site is monitored."""

    operation = ("PATCH", "/sites/{site_id}")

    def is_offered(self, record: Site) -> bool:
        return record.monitoring_enabled


class CheckNow(SiteAction):
    """Make the next check due."""

    path, label, title, button = "check", "Check now…", "Check {name} now?", "Check now"
    audited = None  # no field changes

    def is_offered(self, record: Site) -> bool:
        return record.status not in SUSPENDED

    def is_next(self, record: Site) -> bool:
        return record.last_error is not None

    def run(self, tx: Tx, context: PageContext, record: Site, body: dict[str, object]) -> Any:  # noqa: ARG002
        if record.status in SUSPENDED:
            raise invalid({"status": ["This site is not monitored now. Resume it, or end its maintenance."]})
        return check_now(tx, record.id)

    def sentences(self, seen: Seen[Site]) -> Iterator[str]:  # noqa: ARG002
        yield "The monitor checks the site within some seconds, and then goes on in its interval."

    def notice(self, seen: Seen[Site]) -> str:
        return f"{seen.after.name} is checked now. Reload this page in a few seconds."


class Maintain(SiteAction):
    """Plan a maintenance, in which checks do not count."""

    path, label, title, button = "maintenance", "Maintenance…", "Maintenance of {name}", "Save"

    def fields(self, record: Site) -> Sequence[Field]:  # noqa: ARG002
        return [MAINTENANCE[0]._replace(hint="If blank: no maintenance.")]

    def advice(self, record: Site) -> Sequence[str]:  # noqa: ARG002
        return ["Until then, checks do not count, and an incident that is going on ends."]

    def notice(self, seen: Seen[Site]) -> str:
        return f"{seen.after.name} is in maintenance." if seen.after.status == "maintenance" else "Maintenance ended."


class Pause(SiteAction):
    """Stop checking a site."""

    path, label, title, button = "pause", "Pause monitoring…", "Pause the monitoring of {name}?", "Pause monitoring"
    fixed = {"monitoring_enabled": False}

    def sentences(self, seen: Seen[Site]) -> Iterator[str]:  # noqa: ARG002
        yield "The site is not checked until you resume it. An incident that is going on ends."

    def notice(self, seen: Seen[Site]) -> str:
        return f"{seen.after.name} is paused."


class Resume(SiteAction):
    """Check a site again."""

    path, label, title, button = "resume", "Resume monitoring…", "Resume the monitoring of {name}?", "Resume monitoring"
    fixed = {"monitoring_enabled": True}

    def is_offered(self, record: Site) -> bool:
        return not record.monitoring_enabled

    def is_next(self, record: Site) -> bool:  # noqa: ARG002
        return True

    def sentences(self, seen: Seen[Site]) -> Iterator[str]:  # noqa: ARG002
        yield "The site is checked at once, and then in its interval."

    def notice(self, seen: Seen[Site]) -> str:
        return f"{seen.after.name} is monitored again."
