"""All actions of the console by the kind of their records, and those that a record offers at its head."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import Table

from retainer.billing import payments
from retainer.billing.invoices import lifecycle
from retainer.console.actions.action import Action, Stage, become
from retainer.console.actions.drafts import BILL_QUOTE, copy_of
from retainer.console.actions.mail import SEND_CREDIT_NOTE, send_actions
from retainer.console.actions.money import Bill, Credit, WorkAction
from retainer.console.actions.payments import PaymentAction, RemovePayment
from retainer.console.actions.quotes import QUOTE_ACTIONS
from retainer.console.catalogue import Kind
from retainer.console.controls.control import Field
from retainer.console.editing.fields import choose_fields
from retainer.console.labels import word_of
from retainer.crm.clients import Client
from retainer.errors import invalid
from retainer.schema.billing import ISSUED_INVOICES
from retainer.schema.sites import sites
from retainer.schema.support import ticket_replies, tickets
from retainer.schema.work import tasks
from retainer.sites.sites import SUSPENDED, Site
from retainer.sites.uptime import check_now
from retainer.store.tx import Tx
from retainer.support.ticket_replies import TicketReply
from retainer.support.tickets import Ticket
from retainer.values.records import Record
from retainer.work.tasks import Task

BODY, IS_INTERNAL, STATUS = choose_fields(TicketReply, ticket_replies, "body", "is_internal", "status")


class ReplyAction(Action, frozen=True, kw_only=True):
    def fields_of(self, record: Ticket) -> Sequence[Field]:
        hint = f"Only for colleagues. Otherwise it is a public reply to {record.requester_name or 'the requester'}."
        unchanged = f"Unchanged: {word_of(record.status).lower()}"
        return [
            BODY._replace(is_required=True),
            IS_INTERNAL._replace(label="Internal note", hint=hint),
            STATUS._replace(label="Status afterwards", hint="", empty=unchanged),
        ]


REPLY = ReplyAction(
    path="reply",
    creates="/tickets/{ticket_id}/replies",
    label="Reply",
    button="Add reply",
    next_in=None,
    sentences=(
        "After a public reply, the ticket waits for the requester. An internal note does not change that.",
        "The client is not told: send the reply yourself, or let your integration show it. Replies can't be changed.",
    ),
    notice=("Added to the ticket.", "It is {became} now."),
    audited="ticket answered",
    is_inline=True,
)


def handle(model: type[Record], table: Table, due: str, notice: str, **others: Any) -> Action:
    return Action(
        path="handle",
        label="Status and priority…",
        button="Save",
        fields=tuple(choose_fields(model, table, "status", "priority", "assignee_id", due, use="Update")),
        notice=(notice, "It is {became} now."),
        unchanged="Nothing was changed.",
        **others,
    )


HANDLE_TICKET = handle(
    Ticket,
    tickets,
    "due_at",
    "Ticket saved.",
    sentences=(
        "Resolving or closing stops the response clock. Any other status opens the ticket again.",
        "A public reply of the requester opens a pending, resolved or closed ticket again.",
    ),
)


invoice_becomes = partial(become, lifecycle.TRANSITIONS)


BILL = Bill(
    path="bill",
    creates="/invoices",
    label="Bill…",
    button="Create draft",
    when=lambda record: isinstance(record, Client) or (record.client_id and record.billing_type != "non_billable"),
    next_in=None,
    sentences=("Left out: {left_out}.", "In other currencies: {others}. Choose the currency to bill that."),
    notice=("Draft created. Check it, then issue it. If you delete it, its work is unbilled again.",),
)
INVOICE_ACTIONS = (
    invoice_becomes(
        "sent",
        path="issue",
        label="Issue…",
        needs="lines",
        next_in=None,
        is_inline=True,
        sentences=(
            "{client} is billed {after.total}, due on {after.due_date}.",
            "Lines, amounts and the client's address are then fixed. Only a credit note can correct them.",
            "Nobody gets a message. {advice}",
        ),
        notice=("{after.number} issued. {advice}",),
        audited="invoice issued",
    ),
    WorkAction(
        path="add-work",
        label="Add work…",
        button="Add work",
        when=lambda invoice: invoice.status == "draft",
        sentences=("Left out: {left_out}.", "In other currencies: {others}. Bill that on another invoice."),
        notice=("Work added.",),
    ),
    PaymentAction(
        path="payment",
        label="Record payment…",
        due="balance_due",
        when=lambda invoice: invoice.status in payments.PAYABLE and invoice.balance_due,
        next_in=("sent", "partially_paid"),
        is_inline=True,
        sentences=(
            "{before.balance_due} is due. If the client has paid another amount, change it.",
            "The invoice was written off on {before.written_off_at}. A payment takes that back.",
        ),
        notice=(
            "{paid} recorded on {after.number}, which is {after.status}.",
            "{discount} is its early-payment discount.",
            "{after.balance_due} is still due.",
            "{after.refund_due} is to be refunded.",
        ),
        unchanged="A payment with this reference was recorded before, so nothing was added.",
        audited="payment recorded",
    ),
    PaymentAction(
        path="refund",
        label="Record refund…",
        due="refund_due",
        when=lambda invoice: invoice.refund_due,
        next_in=None,
        sentences=(
            "{before.refund_due} is to be refunded. If you paid back less, change the amount.",
            "Retainer moves no money: pay it back first, then record it here.",
        ),
        notice=("Refund of {paid} recorded on {after.number}.", "{after.refund_due} is still to be refunded."),
        unchanged="A refund with this reference was recorded before, so nothing was added.",
        audited="refund recorded",
    ),
    Credit(
        path="credit",
        creates="/invoices/{invoice_id}/credit-notes",
        label="Credit…",
        button="Issue credit note",
        when=lambda invoice: invoice.status in ISSUED_INVOICES and invoice.total > invoice.amount_credited,
        sentences=(
            "You can credit up to {left}. It first reduces the amount due; anything beyond is a refund.",
            "{made.applied_amount} reduces the amount due.",
            "{made.refundable_amount} was paid already: refund it to the client.",
            "Becomes billable again: {freed}.",
            "A credit note is final: nothing can change it.",
        ),
        notice=("{made.number} issued: {made.total} credited.", "Refund {made.refundable_amount} to the client."),
        audited="credit note issued",
        is_reviewed=True,
    ),
    invoice_becomes(
        "written_off",
        path="write-off",
        label="Write off…",
        sentences=(
            "The {before.balance_due} no longer count as open or overdue.",
            "Revenue does not change. To reduce it too, issue a credit note.",
            "For the VAT, ask your tax adviser, or credit the invoice instead.",
            "If the client pays after all, record the payment: the invoice is then open or paid again.",
        ),
        notice=("{after.balance_due} of {after.number} written off.",),
        audited="invoice written off",
        is_danger=True,
    ),
    invoice_becomes(
        "void",
        path="void",
        label="Void…",
        sentences=(
            "The invoice no longer counts in any report. This can't be undone.",
            "The number is not reused.",
            "Becomes billable again: {freed}.",
        ),
        notice=("{after.number} is void.",),
        audited="invoice voided",
        is_danger=True,
    ),
    RemovePayment(
        path="remove-payment",
        label="Remove payment…",
        when=lambda invoice: invoice.payments,
        sentences=(
            "Remove a payment only if it was recorded by mistake. This can't be undone; the audit log keeps it.",
            "To give money back to the client, credit the invoice instead, and record the refund.",
        ),
        notice=("{paid} removed. {after.number} is {after.status}.",),
        audited=None,  # the function notes it itself
        is_danger=True,
    ),
)


class CheckNow(Action, frozen=True, kw_only=True):
    def run(self, stage: Stage, _: dict[str, Any]) -> None:
        if stage.record.status in SUSPENDED:
            raise invalid({"": ["This site is not monitored now. Resume it, or end its maintenance."]})
        check_now(stage.tx, stage.record.id)


class Maintain(Action, frozen=True, kw_only=True):
    def run(self, stage: Stage, body: dict[str, Any]) -> Any:
        until = body.get("maintenance_until")
        if isinstance(until, str) and until <= stage.tx.now:
            raise invalid({"maintenance_until": ["Must be in the future. If blank, maintenance ends now."]})
        return super().run(stage, body)


(MAINTENANCE,) = choose_fields(Site, sites, "maintenance_until", use="Update")
SITE_ACTIONS = (
    CheckNow(
        path="check",
        label="Check now…",
        when=lambda site: site.status not in SUSPENDED,
        next_in=("down",),
        sentences=("The monitor checks the site within a few seconds. Later checks follow at the usual interval.",),
        notice=("{after.name} is checked now. Reload this page in a few seconds.",),
        audited=None,  # no field changes
    ),
    Maintain(
        path="maintenance",
        label="Maintenance…",
        button="Save",
        fields=(MAINTENANCE._replace(hint="If blank: no maintenance."),),
        when=lambda site: site.monitoring_enabled,
        sentences=("Until then, failed checks do not count, and a current incident ends.",),
        notice=("Maintenance saved.", "The site is {became} now."),
    ),
    Action(
        path="pause",
        label="Pause monitoring…",
        fixed={"monitoring_enabled": False},
        when=lambda site: site.monitoring_enabled,
        sentences=("The site is not checked until you resume it. A current incident ends.",),
        notice=("{after.name} is paused.",),
    ),
    Action(
        path="resume",
        label="Resume monitoring…",
        fixed={"monitoring_enabled": True},
        when=lambda site: not site.monitoring_enabled,
        next_in=None,
        sentences=("The site is checked immediately, and then at its usual interval.",),
        notice=("{after.name} is monitored again.",),
    ),
)
ACTIONS: dict[str, tuple[Action, ...]] = {
    "clients": (BILL,),
    "projects": (BILL,),
    "credit-notes": (SEND_CREDIT_NOTE,),
    "invoices": (*send_actions("invoice", "invoice issued"), *INVOICE_ACTIONS, copy_of("/invoices")),
    "quotes": (*send_actions("quote", "record changed"), *QUOTE_ACTIONS, BILL_QUOTE, copy_of("/quotes")),
    "tasks": (handle(Task, tasks, "due_date", "Task saved.", is_inline=True),),
    "tickets": (REPLY, HANDLE_TICKET),
    "sites": SITE_ACTIONS,
}


BY_HAND = QUOTE_ACTIONS[0]
"""The next step of a draft quote if the server sends no mail."""


def offers_of(tx: Tx, kind: Kind, record: Record) -> Iterator[Action]:
    has_mail, known = bool(tx.store.mail_from), (each for each in ACTIONS.get(kind.name, ()) if getattr(kind, each.of))
    found = (action for action in known if action.when(record) and has_mail >= action.needs_mail)
    found = (msgspec.structs.replace(each, next_in=()) if has_mail and each is BY_HAND else each for each in found)
    return (action for action in found if not action.needs or getattr(record, action.needs))
