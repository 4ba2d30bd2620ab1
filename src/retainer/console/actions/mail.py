"""Actions that send a document by mail: their page shows the message as it will arrive."""

import re
from collections.abc import Sequence
from typing import Any

from retainer.billing import papers
from retainer.console.actions.action import Action, Stage, changed_fields
from retainer.console.catalogue import Kind
from retainer.console.controls.control import Control, Field
from retainer.console.controls.plain import Choices, Flag, LongText
from retainer.console.editing.calls import new_of
from retainer.console.editing.sheet import Sheet
from retainer.console.page_context import PageContext
from retainer.console.values import Block, Fact, Value, Values
from retainer.console.words import file_size
from retainer.errors import FieldErrors
from retainer.files.files import HOLDERS, list_shown
from retainer.identity import audit
from retainer.identity.audit import Fields
from retainer.identity.placeholders import about
from retainer.mail.messages import Mailed, Message
from retainer.mail.send import NewMessage, load_addresses, send
from retainer.mail.texts import load_texts
from retainer.store.tx import Tx

SEPARATORS = re.compile(r"[\s,;]+")
ADDRESSES = ("to", "cc", "bcc")
FIELDS = (
    Field("to", "To", Control(length=2000), "Several addresses with commas. Each gets a message of its own.", True),  # noqa: FBT003
    Field("cc", "Copy", Control(length=2000), "All recipients see these addresses."),
    Field("bcc", "Blind copy", Control(length=2000), "No recipient sees these addresses."),
)
SUBJECT = Field("subject", "Subject", Control(length=255), is_required=True)
TEXT = Field("message", "Text", LongText(length=10000), is_required=True)
MAX_OFFERED = 20
"""Files of a record that the page offers, the oldest first."""
XML = Field("with_xml", "Attach the e-invoice (XML)", Flag(), "The PDF carries it, too.")


SENDING = "The message is sent within a moment. If an address is refused, this page and Today say so."
SENT = "{after.number} is being sent to {recipients}."


class SendDocument(Action, frozen=True, kw_only=True):
    """Sends a document, and issues it first if it is a draft."""

    record: Mailed
    needs_mail: bool = True

    def fields_of(self, record: Any) -> Sequence[Field]:
        fields = (*FIELDS, SUBJECT, TEXT._replace(hint=about(self.record, is_subject=False)))
        return fields if self.record == "quote" or getattr(record, "is_imported", False) else (*fields, XML)

    def sheet(self, kind: Kind, tx: Tx, context: PageContext, record: Any) -> Sheet:
        sheet = super().sheet(kind, tx, context, record)
        sheet.fields += files_of(tx, self.record, record)
        return sheet

    def preset(self, tx: Tx, record: Any) -> dict[str, str]:
        paper = papers.load_paper(tx, record)
        texts = load_texts(tx, paper)
        addresses = ", ".join(load_addresses(tx, record.client_id))
        return {"to": addresses, "subject": texts.subject, "message": texts.text}

    def build_body(self, _record: Any, values: dict[str, Any], _errors: FieldErrors) -> dict[str, Any]:
        body = {name: value for name, value in values.items() if value and name != XML.name}
        for name in ADDRESSES:
            if isinstance(text := body.get(name), str):
                body[name] = [each for each in SEPARATORS.split(text) if each]
        if isinstance(chosen := body.get("file_ids"), list):
            body["file_ids"] = [*map(int, chosen)]
        return {**body, "attach": ["pdf", "xml"] if values.get(XML.name) else ["pdf"]}

    def field_of(self, path: str, _: dict[str, Any]) -> str:
        name = path.partition(".")[0]
        return XML.name if name == "attach" else name

    def run(self, stage: Stage, body: dict[str, Any]) -> list[Message]:
        asked = new_of(stage.tx, NewMessage, body)
        return send(stage.tx, self.record, stage.record.id, asked, lambda _: None)

    def facts(self, stage: Stage, values: Values) -> dict[str, Any]:
        sent = stage.made or ()
        return {**super().facts(stage, values), "recipients": ", ".join(each.to for each in sent)}

    def shown(self, stage: Stage, obstacle: str = "") -> dict[str, Any]:
        found = super().shown(stage, obstacle)
        return {**found, "below": [*message_blocks(stage.made or ()), *found["below"]]}

    def note(self, stage: Stage) -> None:
        """Note what was issued; who got a message stands on the page of the document."""
        if changed_fields(stage):
            super().note(stage._replace(values=Fields()))


def files_of(tx: Tx, name: Mailed, record: Any) -> list[Field]:
    """Return the field that attaches files: those of the document and its client, and of a credited invoice."""
    holders = {name: record.id} if name in HOLDERS else {"invoice": record.invoice_id}
    found = [
        (str(file.id), f"{file.name}, {file_size(file.size)}")
        for holder, holder_id in (holders | {"client": record.client_id}).items()
        for file in list_shown(tx, holder, holder_id, MAX_OFFERED)
    ]
    hint = "Files of this document and of its client."
    return [Field("file_ids", "Attach files", Choices(tuple(found)), hint)] if found else []


def message_blocks(sent: Sequence[Message]) -> list[Block]:
    """Return the message as it arrives."""
    if not sent:
        return []
    first = sent[0]
    facts = {
        "To": ", ".join(each.to for each in sent if each.to not in first.cc),
        "Copy": ", ".join(first.cc),
        "Replies to": first.reply_to or "",
        "Subject": first.subject,
        "Attached": ", ".join(each.name for each in first.attachments),
    }
    fields = [Fact(label, Value("text", text)) for label, text in facts.items() if text]
    return [Block("fields", title="The message", fields=fields), Block("text", title="Text", text=first.message)]


def send_actions(record: Mailed, issue: audit.Action) -> tuple[Action, Action]:
    """Return the actions that send a kind of document; `issue` is the audited action of issuing a draft."""
    issuing = SendDocument(
        path="issue-and-send",
        label="Issue and send…" if record == "invoice" else "Send…",
        needs="lines",
        when=lambda each: each.status == "draft",
        next_in=("draft",),
        sentences=("Lines and amounts are then fixed.", SENDING),
        record=record,
        notice=(SENT,),
        audited=issue,
    )
    again = SendDocument(
        path="mail",
        label="Send…",
        when=lambda each: each.status not in {"draft", "void", "cancelled"},
        next_in=("sent",) if record == "quote" else (),
        sentences=(SENDING,),
        record=record,
        notice=(SENT,),
        audited=issue,
    )
    return issuing, again


SEND_CREDIT_NOTE = SendDocument(
    path="mail",
    label="Send…",
    next_in=None,
    sentences=(SENDING,),
    record="credit_note",
    notice=(SENT,),
    audited=None,  # nothing changes
    of="reading",
)
