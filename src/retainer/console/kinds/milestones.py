"""Milestones: stages of a project, which its page shows."""

from retainer.console.kinds.display import Display

DISPLAY = Display(columns=("name", "status", "due_date", "amount", "tasks_done_count", "tasks_count"))
