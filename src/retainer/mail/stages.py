"""Stages of reminders: the settings of the account, and our texts where it has none of its own."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta
from sqlalchemy import select

from retainer.documents.facts import Language
from retainer.identity import audit
from retainer.identity.accounts import get_account
from retainer.mail.texts import GREETING, REGARDS, Texts
from retainer.schema.identity import accounts
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.common import Unit
from retainer.values.decoding import decoder, json_text
from retainer.values.kinds import Text255, Text5000

LANGUAGES: tuple[Language, ...] = ("en", "de")
MAX_STAGES = 5
SUGGESTED_DAYS = (7, 21, 35)
NAMES = {
    "en": ("Reminder", "Second reminder", "Third reminder", "Fourth reminder", "Fifth reminder"),
    "de": (
        *("Zahlungserinnerung", "Zweite Zahlungserinnerung", "Dritte Zahlungserinnerung"),
        *("Vierte Zahlungserinnerung", "Fünfte Zahlungserinnerung"),
    ),
}
SUBJECTS = {"en": "{{name}}: invoice {number} from {agency}", "de": "{{name}}: Rechnung {number} von {agency}"}
FIRST = {
    "en": "Our invoice {number} was due on {due_date}, and {balance} of it is open. If you have paid in the last days, "
    "thank you, and please ignore this message. If not, please pay it soon. The invoice is attached.",
    "de": "unsere Rechnung {number} war am {due_date} fällig, und {balance} sind noch offen. Wenn Sie in den letzten "
    "Tagen bezahlt haben, danken wir Ihnen, und diese Nachricht ist gegenstandslos. Sonst bitten wir Sie, den Betrag "
    "bald zu überweisen. Die Rechnung liegt bei.",
}
LATER = {
    "en": "Our invoice {number} was due on {due_date}, and {balance} of it is still open. We have written to you about "
    "it before. Please pay it in the next days, or tell us if something is unclear. The invoice is attached.",
    "de": "unsere Rechnung {number} war am {due_date} fällig, und {balance} sind immer noch offen. Wir haben Sie schon "
    "daran erinnert. Bitte überweisen Sie den Betrag in den nächsten Tagen, oder sagen Sie uns, wenn etwas unklar ist. "
    "Die Rechnung liegt bei.",
}


class ReminderStage(msgspec.Struct, kw_only=True, frozen=True):
    """A reminder that is sent a number of days after the due date; without a text in a language, ours is sent."""

    days_after_due: Annotated[int, Meta(ge=1, le=365), Unit("days")]
    subject_en: Text255 | None = None
    text_en: Text5000 | None = None
    subject_de: Text255 | None = None
    text_de: Text5000 | None = None


class Reminders(NamedTuple):
    """The stages of the account, by their days, and the day from which they count; None: reminders are off."""

    stages: tuple[ReminderStage, ...]
    since: str | None


read_stages = decoder(tuple[ReminderStage, ...])
"""Reads the JSON of the column `reminder_stages`."""
STORED = select(*accounts.c["reminder_stages", "reminders_from"]).where(accounts.c.id == ACCOUNT)


def load_reminders(tx: Tx) -> Reminders:
    stored, since = tx.one(STORED) or ("[]", None)
    return Reminders(read_stages(stored), since)


def set_reminders(tx: Tx, stages: Sequence[ReminderStage], *, is_on: bool) -> Reminders:
    """Change the reminders of the account; return them.

    What was reached before they were turned on, or before their days changed, is not sent: nobody expects it.
    """
    before, former = get_account(tx), load_reminders(tx)
    days = [stage.days_after_due for stage in stages]
    is_same = former.since is not None and days == [stage.days_after_due for stage in former.stages]
    since = (former.since if is_same else tx.today) if is_on and stages else None
    tx.update_columns(accounts, before["id"], {"reminder_stages": json_text(stages), "reminders_from": since})
    target = audit.Target("account", before["id"], before["name"])
    audit.note_changes(tx, "account changed", target, before, get_account(tx))
    return Reminders(tuple(stages), since)


def default_texts(number: int, language: Language) -> Texts:
    """Return our texts of a stage, from 1 on, with their placeholders."""
    subject = SUBJECTS[language].replace("{{name}}", NAMES[language][number - 1])
    sentences = (FIRST if number == 1 else LATER)[language]
    return Texts(subject, f"{GREETING[language]}\n\n{sentences}\n\n{REGARDS[language]}")


def texts_of(stage: ReminderStage, number: int, language: Language) -> Texts:
    """Return the texts of a stage: those of the account, or ours."""
    ours = default_texts(number, language)
    subject, text = getattr(stage, f"subject_{language}"), getattr(stage, f"text_{language}")
    return Texts(subject or ours.subject, text or ours.text)
