"""The action on a task: set its status, priority, assignee and due date."""

from retainer.console.actions.action import Action
from retainer.console.editing.fields import choose_fields
from retainer.schema.work import tasks
from retainer.work.tasks import Task

HANDLE = Action(
    path="handle",
    label="Status and assignee…",
    button="Save",
    when=lambda _: True,
    fields=tuple(choose_fields(Task, tasks, "status", "priority", "assignee_id", "due_date", use="Update")),
    notice=("Task saved.", "It is {became} now."),
    unchanged="Nothing was changed.",
    is_inline=True,
)
