"""Tasks: pieces of work, by default the open ones by their due date."""

from collections.abc import Iterator

from retainer.console.actions.tasks import HANDLE
from retainer.console.kinds.display import Display
from retainer.console.records.blocks import Block
from retainer.console.records.page import RecordPage
from retainer.console.values import Column
from retainer.work.tasks import Task


def blocks(page: RecordPage[Task]) -> Iterator[Block]:
    yield HANDLE.block(page, page.own, "Status and assignment")


DISPLAY = Display(
    columns=(Column("title", "project_id"), "assignee_id", "priority", "due_date", "tracked_minutes", "status"),
    filters=("project_id", "assignee_id", "status", "due_date_to"),
    views=(
        ("Open", "open=true&sort=due_date"),
        ("Overdue", "overdue=true&sort=due_date"),
        ("Mine", "open=true&assignee_id=me&sort=due_date"),
        ("Done", "status=done&sort=-updated_at"),
        ("All", "sort=-created_at"),
    ),
    facts=("client_id", "project_id", "assignee_id", "due_date", "tracked_minutes", "estimated_minutes", "priority"),
    blocks=blocks,
    related=("tasks", "time-entries"),
)
