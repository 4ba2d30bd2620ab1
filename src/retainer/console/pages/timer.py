"""The timer of My week: work that the signed-in user begins, and that becomes a time entry when it ends."""

from retainer.console.editing.pages import create_record
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.week_page import Week, at_field, part_of
from retainer.console.typed import minutes_text
from retainer.errors import Refusal, invalid
from retainer.store.tx import Tx
from retainer.values.exact import minutes_between
from retainer.work import timers
from retainer.work.time_rules import MAX_MINUTES, TimeEntry


def act(tx: Tx, context: PageContext) -> Reply:
    """Start, stop or discard the timer. Raises `validation_failed`, and the errors of the API at the work."""
    form, running = context.form, timers.find(tx)
    step = form.text("timer")
    if step == "start":
        if running is not None:
            raise invalid({"work": ["Your timer is running already. Stop it first."]})
        offered = {name for _, options in Week(tx, context).offered for name, _ in options}
        if form.text("work") not in offered:
            raise invalid({"work": ["Choose the work that you begin."]})
        timers.start(tx, form.text("work"), form.text("description").strip())
        return context.redirect("/week", "Timer started.")
    if running is None:
        return context.redirect("/week", "No timer is running.", kind="warn")
    timers.discard(tx)
    if step == "discard":
        return context.redirect("/week", "Timer discarded. Nothing was recorded.", kind="warn")
    entry = record(tx, context, running)
    return context.redirect("/week", f"{minutes_text(entry.duration_minutes)} recorded.")


def record(tx: Tx, context: PageContext, timer: timers.Timer) -> TimeEntry:
    """Record the time of a timer until now. Raises `validation_failed`, with the errors of the API at the work."""
    if minutes_between(timer.started_at, tx.now) > MAX_MINUTES:
        raise invalid({"work": ["The timer has run for more than a day. Discard it, and type your hours below."]})
    field, record_id = part_of(timer.work) or ("", "0")
    body = {field: int(record_id), "started_at": timer.started_at, "ended_at": tx.now, "description": timer.description}
    try:
        entry = create_record(tx, context.catalogue.find("time-entries"), body)
    except Refusal as refusal:
        raise at_field(refusal, "work") from None
    if not isinstance(entry, TimeEntry):
        raise TypeError(f"The API answered with {entry!r}.")
    return entry
