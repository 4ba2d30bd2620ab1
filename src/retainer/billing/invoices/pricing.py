"""Pricing: the lines and totals of a draft, from the work that they bill and the terms of its client. Pure."""

from collections.abc import Sequence
from decimal import Decimal

from msgspec.structs import replace

from retainer.billing import rules
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.invoices.unbilled import DayRange, LeftOut, Selection
from retainer.billing.kinds.base import LineContext
from retainer.billing.merging import keep_equal_lines
from retainer.billing.reading import Projects
from retainer.billing.work import KINDS, SELECTABLE, Matches, kinds_of
from retainer.errors import BodyErrors, for_callers, part
from retainer.store.constraints import MISSING

REASONS = {
    "covered": "{part.minutes} min that a fee covers (name its project in project_ids to bill it)",
    "unpriced": "{part.minutes} min without a rate (give each an hourly_rate)",
    "fee_billed": "{part.count} milestones whose fixed fee other lines bill already",
}


def price_draft(errors: BodyErrors, context: LineContext, matches: Matches) -> list[LeftOut]:
    """Price all lines of a draft and set its totals; return what unbilled work was left out."""
    invoice = context.invoice
    left_out = check_unbilled_work(errors, invoice, matches, context.projects) if invoice.unbilled_work else []
    for line in rules.each_line(errors, invoice.lines):
        price_line(errors, line, context)
    keep_equal_lines(invoice.lines, [*context.current.values()])
    rules.compute_totals(invoice)
    return left_out


def price_line(errors: BodyErrors, line: InvoiceLine, context: LineContext) -> None:
    """Fill in what a line gets from its work and its invoice; note an error for each field that cannot be."""
    kinds = kinds_of(line)
    for other in kinds[1:]:
        errors.error(other.field, f"A line bills one kind of work; this one has {kinds[0].field}, too.")
    if kinds:
        line.kind = kinds[0].name
        amount = kinds[0].price(errors, line, context)
    else:
        line.kind, amount = "item", None
        if errors.readable(*(kind.field for kind in KINDS)):
            for field in ("description", "unit_price"):
                if getattr(line, field) is None:
                    errors.error(field, f"{part('Is required')}, unless the line bills work.")
    line.description = line.description or ""
    line.unit_price = line.unit_price or Decimal(0)
    line.quantity = Decimal(1) if line.quantity is None else line.quantity
    rules.complete_line(errors, line, context.invoice, context.terms.tax_rate, context.projects, amount=amount)


def check_unbilled_work(errors: BodyErrors, invoice: Invoice, matches: Matches, projects: Projects) -> list[LeftOut]:
    """Note errors for a request for unbilled work: no kind, wrong projects or days, nothing to bill.

    Returns what was left out.
    """
    if not matches:
        kinds = ", ".join(f'"{kind.selection}": {{}}' for kind in SELECTABLE)
        errors.error("unbilled_work", f"Say what to bill: {{{kinds}}}, or some of these.")
    for kind, selection, _ in matches:
        check_selection(errors, f"unbilled_work.{kind.selection}", selection, invoice.client_id, projects)
    left_out = sum_up([part for _, _, found in matches for part in found.left_out])
    if not sum(found.size for _, _, found in matches) and not errors.errors:
        message = f"{part(f'Client {invoice.client_id}')} has no unbilled work in {invoice.currency} that matches."
        parts = ", ".join(REASONS[part.reason].format(part=part) for part in left_out if part.reason in REASONS)
        others = map(_about_other_currency, in_others(left_out))
        message = " ".join([message, *([f"Left out: {parts}."] if parts else []), *others])
        errors.error("unbilled_work", message, "nothing_to_bill")
    return left_out


def _about_other_currency(left: LeftOut) -> str:
    how = for_callers(f', with "currency": "{left.currency}"')
    return f"Left out: {part(left.amount)} {left.currency}. Bill that on another invoice{how}."


def in_others(left_out: list[LeftOut]) -> list[LeftOut]:
    return [part for part in left_out if part.reason == "other_currency"]


def sum_up(parts: Sequence[LeftOut]) -> list[LeftOut]:
    """Return what the kinds of work leave out, with an entry for each reason and currency."""
    sums: dict[tuple[str, str], LeftOut] = {}
    for each in parts:
        former, whole = sums.get((each.reason, each.currency)), each
        if former is not None:
            amount = None if each.amount is None else each.amount + (former.amount or 0)
            count, minutes = each.count + former.count, each.minutes + former.minutes
            whole = replace(each, count=count, minutes=minutes, amount=amount)
        sums[each.reason, each.currency] = whole
    return [sums[key] for key in sorted(sums, key=lambda key: (key[0] == "other_currency", *key))]


def check_selection(
    errors: BodyErrors, path: str, selection: Selection, client_id: int | None, projects: Projects
) -> None:
    for position, project_id in enumerate(selection.project_ids or ()):
        project = projects.get(project_id)
        if project is None:
            errors.error(f"{path}.project_ids.{position}", MISSING.format("project"))
        elif client_id is not None and project.client_id != client_id:
            errors.error(f"{path}.project_ids.{position}", f"Is not a project of client {client_id}.")
    if isinstance(selection, DayRange) and selection.from_ and selection.to and selection.to < selection.from_:
        errors.error(f"{path}.to", f"Must not be before from, which is {part(selection.from_)}.")


def service_days(context: LineContext) -> list[str]:
    """Return the first and the last days of all that the lines bill."""
    return [day for line in context.invoice.lines for kind in kinds_of(line) for day in kind.days_of(line, context)]
