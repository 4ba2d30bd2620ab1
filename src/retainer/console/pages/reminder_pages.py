"""The page of reminders: whether they are sent, their stages, and how many invoices get one on the next morning."""

from collections.abc import Iterator
from types import SimpleNamespace

from sqlalchemy import func, select

from retainer.billing.balance import overdue
from retainer.console import words
from retainer.console.controls.control import Control, Field
from retainer.console.controls.plain import Flag, LongText, Whole
from retainer.console.editing.form_pages import FormPage, Section
from retainer.console.page_context import PageContext, Reply
from retainer.console.values import Block
from retainer.errors import FieldErrors
from retainer.identity.audit import Fields
from retainer.identity.placeholders import about, find_errors
from retainer.jobs.step import next_morning
from retainer.mail.reminders import NUMBERS, count_due
from retainer.mail.stages import (
    LANGUAGES,
    SUGGESTED_DAYS,
    Reminders,
    ReminderStage,
    default_texts,
    load_reminders,
    set_reminders,
    texts_of,
)
from retainer.schema.billing import invoices
from retainer.store.tx import Tx
from retainer.values.exact import local_day
from retainer.values.reading import read_fields

PARTS = ("subject", "text")
OVERDUE = select(func.count()).select_from(invoices).where(overdue(invoices))
NOT_CONFIGURED = (
    "This server sends no mail, so it sends no reminders either. Its operator can change that: RETAINER_SMTP_URL."
)
HINT = about("reminder", is_subject=False)
BLANK = "Leave it blank to skip this reminder."
RULE = (
    "On its day, at 06:00, each reminder goes to the client's address for invoices, with the PDF. It is sent once, and "
    "only if the invoice is still open. If several reminders are due at once, only the latest is sent. If one comes "
    "late, the next waits, at most a week. Fees and interest are not added. To leave out a client or an invoice, "
    "change “Reminders” in its form, under “More fields”."
)
PAST = "Only reminders whose day comes after you turn them on, or change their days, are sent."


def fields(*_: object) -> Iterator[Field]:
    yield Field("is_on", "Send reminders", Flag(), PAST)
    for number in NUMBERS:
        yield Field(f"days_after_due_{number}", "Days after the due date", Whole("days"), BLANK)
        for language, name in zip(LANGUAGES, ("English", "German"), strict=True):
            yield Field(f"subject_{language}_{number}", f"Subject, {name}", Control(length=255))
            yield Field(f"text_{language}_{number}", f"Text, {name}", LongText(length=5000), HINT)


def values_of(tx: Tx, *_: object) -> SimpleNamespace:
    """Return the stages as they are sent: with our texts, where the account has none; we suggest the first ones."""
    stages, since = load_reminders(tx)
    found: Fields = {"is_on": since is not None}
    for number, suggested in zip(NUMBERS, (*SUGGESTED_DAYS, None, None), strict=True):
        stage = stages[number - 1] if number <= len(stages) else None
        found[f"days_after_due_{number}"] = stage.days_after_due if stage else None if stages else suggested
        for language in LANGUAGES:
            texts = texts_of(stage, number, language) if stage else default_texts(number, language)
            found |= {f"{part}_{language}_{number}": text for part, text in zip(PARTS, texts, strict=True)}
    return SimpleNamespace(**found)


def tell(tx: Tx, *_: object) -> Iterator[str | Block]:
    if not tx.store.mail_from:
        yield Block("notice", text=NOT_CONFIGURED)
    reminders = load_reminders(tx)
    if reminders.since is None:
        late = words.count(int(tx.value(OVERDUE)), "invoice")
        suggested = tuple(ReminderStage(days_after_due=days) for days in SUGGESTED_DAYS)
        due = forecast(tx, Reminders(reminders.stages or suggested, tx.today))
        yield f"Reminders are off. Overdue now: {late}. If you turn them on now with the days below: {due}."
    else:
        yield f"Reminders have been on since {words.short_day(reminders.since)}. {forecast(tx, reminders)}."
    yield RULE


def forecast(tx: Tx, reminders: Reminders) -> str:
    """Return how many invoices get a reminder next: `On 3 May at 06:00, 2 invoices get one`."""
    day = local_day(next_morning(tx), tx.actor.timezone)
    count = count_due(tx, reminders, day)
    return f"On {words.short_day(day)} at 06:00, {words.count(count, 'invoice')} {'gets' if count == 1 else 'get'} one"


def save(tx: Tx, context: PageContext, _: None, body: Fields) -> Reply:
    """Change the reminders. Raises `validation_failed`."""
    before = vars(values_of(tx))
    filled = {**before, **body}
    for name, text in body.items():
        if name.startswith(PARTS) and isinstance(text, str) and text != before[name]:
            for message in find_errors("reminder", text, is_subject=name.startswith("subject")):
                tx.error(name, message)
    stages = [stage for number in NUMBERS if (stage := read_stage(tx, filled, number)) is not None]
    is_on = bool(filled["is_on"])
    if is_on and not stages:
        tx.error("days_after_due_1", "Enter the days of at least one reminder, or turn reminders off.")
    tx.raise_errors()
    reminders = set_reminders(tx, stages, is_on=is_on)
    if reminders.since is None:
        return context.redirect("/settings/reminders", "Saved. Reminders are off.", kind="warn")
    return context.redirect("/settings/reminders", f"Saved. {forecast(tx, reminders)}.")


def read_stage(tx: Tx, filled: Fields, number: int) -> ReminderStage | None:
    """Return a stage as it was filled in; None without days. Notes its errors."""
    if filled[f"days_after_due_{number}"] is None:
        return None
    names = {name: f"{name}_{number}" for name in ReminderStage.__struct_fields__}
    errors = FieldErrors()
    values = read_fields(ReminderStage, {name: filled[name_in_form] for name, name_in_form in names.items()}, errors)
    for name, messages in errors.items():
        for message in messages:
            tx.error(names.get(name, name), message)
    if errors:
        return None
    for language in LANGUAGES:
        for part, ours in zip(PARTS, default_texts(number, language), strict=True):
            name = f"{part}_{language}"
            values[name] = None if values.get(name) == ours else values.get(name)
    stage = ReminderStage(**values)
    former = filled.get(f"days_after_due_{number - 1}")
    if isinstance(former, int) and former >= stage.days_after_due:
        tx.error(names["days_after_due"], "Must be later than the reminder before it.")
    return stage


REMINDERS = FormPage(
    *(Section("Settings", "/settings"), "Reminders of overdue invoices", "Save", save, tell, fields, values_of),
    headings={"is_on": "Reminders", **{f"days_after_due_{number}": f"Reminder {number}" for number in NUMBERS}},
    reads_on=True,
)
