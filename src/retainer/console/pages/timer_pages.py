"""The timer of the signed-in user: its place in the top bar, and the form that starts and stops it."""

from typing import Any, NamedTuple, cast

from retainer.console import typed
from retainer.console.editing.calls import create_record, errors_at
from retainer.console.names import Link
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.sign_in_pages import destination
from retainer.console.tracked import load_works, may_track, part_of
from retainer.errors import invalid
from retainer.store.tx import Tx
from retainer.values.exact import minutes_between
from retainer.work import timers
from retainer.work.time_rules import MAX_MINUTES, TimeEntry


class RunningTimer(NamedTuple):
    """A timer with its work, whose link is None once that was deleted, and the minutes since it was started."""

    timer: timers.Timer
    work: Link | None
    minutes: int


def find_running(tx: Tx, context: PageContext) -> RunningTimer | None:
    """Return the timer for a page."""
    timer = timers.find(tx)
    if timer is None:
        return None
    work = next((work for _, work, _ in load_works(tx, context.catalogue, {timer.work})), None)
    return RunningTimer(timer, work, minutes_between(timer.started_at, tx.now))


def read(tx: Tx, context: PageContext) -> None:
    """Check the work of the form, for `move`. Raises `validation_failed` for work that the user cannot begin."""
    running, step = timers.find(tx), context.form.text("timer")
    if step == "start":
        context.filled = check_work(tx, context, "")
    elif running is not None and step != "discard":
        context.filled = check_work(tx, context, running.work)


def check_work(tx: Tx, context: PageContext, own: str) -> str:
    """Return the work of the form, by default the timer's own. Raises `validation_failed`."""
    work = context.form.text("work", own)
    if not work or (work != own and not may_track(tx, context.catalogue, work)):
        raise invalid({"work": [f"Choose the work that {'the time is for' if own else 'you begin'}."]})
    return work


def move(tx: Tx, context: PageContext) -> Reply:
    """Start, stop or discard the timer; one that runs is recorded before another is started.

    Raises `validation_failed`, and the errors of the API at the work; the timer then goes on.
    """
    form, running, next_page = context.form, timers.find(tx), destination(context) or "/week"
    step, said = form.text("timer"), list[str]()
    if running is None and step != "start":
        return context.redirect(next_page, "No timer is running.", kind="warn")
    if running is not None and step == "discard":
        timers.discard(tx)
        return context.redirect(next_page, "Timer discarded. Nothing was recorded.", kind="warn")
    note = form.text("description").strip()
    if running is not None:
        is_stopped = step != "start"
        work = context.filled if is_stopped and context.filled else running.work
        text = note if is_stopped and "description" in form else running.description
        said.append(f"{typed.minutes_text(record(tx, context, running, work, text))} recorded.")
    if step == "start":
        timers.start(tx, context.filled, note)
        said.append("Timer started.")
    return context.redirect(next_page, " ".join(said))


def record(tx: Tx, context: PageContext, timer: timers.Timer, work: str, description: str | None) -> int:
    """Record the time of a timer until now, and end it; return the minutes. Raises `validation_failed`."""
    if minutes_between(timer.started_at, tx.now) > MAX_MINUTES:
        raise invalid({"work": ["The timer has run for more than a day. Discard it, and type your hours below."]})
    field, record_id = part_of(work) or ("", "0")
    body: dict[str, Any] = {field: int(record_id), "started_at": timer.started_at, "ended_at": tx.now}
    with errors_at("work"):
        made = create_record(tx, context.catalogue.find("time-entries"), body | {"description": description or None})
    timers.discard(tx)
    return cast(TimeEntry, made).duration_minutes
