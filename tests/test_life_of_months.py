"""The months of retainers, billed, moved, credited, voided and deleted in any order, compared with a model.

Each month that is due and not on a live line is in the preview, and the next run bills exactly these.
"""

from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.length import first, length
from tests.lives import Life, run_lives

EXAMPLES, STEPS = length(40), 40
START = "2026-11-20T12:00:00Z"
MONTHS = [f"{2026 + n // 12}-{n % 12 + 1:02}" for n in range(8, 16)]
PRICES = st.sampled_from([None, "700"])
DAYS = st.sampled_from([None, None, "2026-10-31", "2026-12-01", "2027-02-15"])
CHOICE = st.integers(0, 11)


@dataclass
class Retainer:
    """A project with a monthly fee, from its first month to its last."""

    id: int
    begins: str
    ends: str
    amount: Fraction
    billing_type: str = "retainer"


@dataclass(eq=False)
class Line:
    """A line of an invoice, the month that it bills, and how much of it is not credited."""

    id: int
    month: tuple[int, str]
    left: Fraction = Fraction(1)


@dataclass(eq=False)
class Invoice:
    """An invoice; its `live` months cannot be billed again."""

    id: int
    status: str = "draft"
    lines: list[Line] = field(default_factory=list)

    path = property(lambda self: f"/invoices/{self.id}")
    live = property(lambda self: [] if self.status == "void" else [line.month for line in self.lines if line.left])


class Months(Life):
    """A client with two retainers; each step sends a request and expects what the model says."""

    def __init__(self, databases):
        super().__init__(databases, START)
        self.today, self.invoices, self.projects = date.fromisoformat(START[:10]), [], []

    @initialize()
    def begin(self):
        self.client = self.api.make("/clients", tax_rate="19", payment_terms_days=14)["id"]
        for name, begins, ends, amount in (("Hosting", "2026-09", "9999-12", 50), ("Support", "2026-11", "2027-01", 9)):
            fields = {"start_date": f"{begins}-15", "billing_type": "retainer", "retainer_amount": f"{amount}.00"}
            fields |= {"due_date": f"{ends}-10"} if ends < "9999" else {}
            made = self.api.make("/projects", client_id=self.client, name=name, **fields)
            self.projects.append(Retainer(made["id"], begins, ends, Fraction(amount)))

    # The model

    drafts = property(lambda self: [invoice for invoice in self.invoices if invoice.status == "draft"])
    issued = property(lambda self: [invoice for invoice in self.invoices if invoice.status == "sent"])

    def taken(self, besides=None):
        return {month for invoice in self.invoices if invoice is not besides for month in invoice.live}

    def due(self, projects, besides=None, start="0000-01", end="9999-12"):
        """Return the months that a run bills; those on one invoice may count as free."""
        taken, now = self.taken(besides), f"{self.today:%Y-%m}"
        return [
            (project.id, month)
            for project in projects
            if project.billing_type == "retainer"
            for month in MONTHS
            if max(project.begins, start) <= month <= min(project.ends, end, now) and (project.id, month) not in taken
        ]

    def faults(self, invoice, wanted):
        """Return the codes of errors of `wanted`: months, each with the line that bills another until now, or None."""
        found, seen, taken = set(), set(), self.taken(invoice)
        projects = {project.id: project for project in self.projects}
        for line, month in wanted:
            if month in seen:
                found.add("validation_failed")
            elif month in taken:
                found.add("already_billed")
            elif not (line and line.month == month):
                project = projects[month[0]]
                if project.billing_type != "retainer" or month[1] < project.begins:
                    found.add("validation_failed")
            seen.add(month)
        return found

    def expect(self, answer, invoice, kept, wanted, codes):
        """Check an answer: the errors, or the lines of the invoice in their order."""
        if codes:
            assert (answer.status, answer.code) == (422, min(codes) if len(codes) == 1 else "validation_failed"), answer
            return
        lines = [(line["project_id"], line["fee_month"]) for line in answer.data["lines"]]
        assert lines == wanted, answer
        if invoice is None:
            invoice = Invoice(answer.data["id"])
            self.invoices.append(invoice)
        former = {line.id: line for line in kept}
        assert {line["id"] for line in answer.data["lines"]} >= former.keys()
        invoice.lines = [former.get(line["id"]) or Line(line["id"], None) for line in answer.data["lines"]]
        for line, month in zip(invoice.lines, wanted, strict=True):
            line.month = month

    # What happens

    @rule(days=st.sampled_from([1, 11, 31]))
    def let_days_pass(self, days):
        if self.today < date(2027, 3, 1):
            self.traveller.shift(timedelta(days=days))
            self.today += timedelta(days=days)

    @rule(chosen=CHOICE, start=DAYS, end=DAYS, only=st.sampled_from([None, None, 0, 1]))
    def bill_what_is_due(self, chosen, start, end, only):
        """Let a new invoice or a draft bill what is due, the draft with some of its lines."""
        start, end = (start, end) if (start or "0") <= (end or "9") else (end, start)
        projects = self.projects if only is None else [self.projects[only]]
        selection = {"from": start, "to": end, "project_ids": None if only is None else [projects[0].id]}
        work = {"fees": {name: value for name, value in selection.items() if value}}
        invoice = self.drafts[chosen % len(self.drafts)] if self.drafts and chosen % 3 == 0 else None
        kept = invoice.lines[chosen % 2 :] if invoice else []
        named = [line.month for line in kept]
        limits = {"start": (start or "0000-01")[:7], "end": (end or "9999-12")[:7]}
        due = [month for month in self.due(projects, invoice, **limits) if month not in named]
        body = {"unbilled_work": work}
        if invoice:
            answer = self.api.patch(invoice.path, body | {"lines": [{"id": line.id} for line in kept]})
        else:
            answer = self.api.create("/invoices", client_id=self.client, **body)
        self.expect(answer, invoice, kept, named + due, set() if due else {"nothing_to_bill"})

    @rule(chosen=CHOICE, project=st.integers(0, 1), month=st.sampled_from(MONTHS), price=PRICES)
    def bill_by_hand(self, chosen, project, month, price):
        wanted = (self.projects[project].id, month)
        line = {"project_id": wanted[0], "fee_month": month} | ({"unit_price": price} if price else {})
        codes = self.faults(None, [(None, wanted)])
        if self.drafts and chosen % 2:
            invoice = self.drafts[chosen % len(self.drafts)]
            answer = self.api.create(f"{invoice.path}/lines", **line)
            assert answer.status == (422 if codes else 201), answer
            if not codes:
                invoice.lines.append(Line(answer.data["id"], wanted))
        else:
            answer = self.api.create("/invoices", client_id=self.client, lines=[line])
            self.expect(answer, None, [], [wanted], codes)

    @precondition(lambda self: any(invoice.lines for invoice in self.drafts))
    @rule(data=st.data())
    def move_months(self, data):
        """Let the lines of a draft exchange their months or bill others, in another order, perhaps without one."""
        invoice = data.draw(st.sampled_from([invoice for invoice in self.drafts if invoice.lines]))
        lines = data.draw(st.permutations(invoice.lines))[: data.draw(st.integers(1, len(invoice.lines)))]
        months = data.draw(st.permutations([line.month for line in invoice.lines]))[: len(lines)]
        if data.draw(st.booleans()):
            project = data.draw(st.sampled_from(self.projects))
            months[0] = (project.id, data.draw(st.sampled_from(MONTHS)))
        wanted = list(zip(lines, months, strict=True))
        body = [{"id": line.id, "project_id": month[0], "fee_month": month[1]} for line, month in wanted]
        answer = self.api.patch(invoice.path, {"lines": body})
        self.expect(answer, invoice, lines, months, self.faults(invoice, wanted))

    @precondition(lambda self: self.drafts)
    @rule(chosen=CHOICE)
    def delete(self, chosen):
        """Delete a line of a draft, or the draft."""
        invoice = self.drafts[chosen % len(self.drafts)]
        if invoice.lines and chosen % 2:
            line = invoice.lines.pop(chosen % len(invoice.lines))
            assert self.api.delete(f"{invoice.path}/lines/{line.id}").status == 204
        else:
            assert self.api.delete(invoice.path).status == 204
            self.invoices.remove(invoice)

    @precondition(lambda self: any(invoice.lines for invoice in self.drafts))
    @rule(chosen=CHOICE)
    def send(self, chosen):
        likely = [invoice for invoice in self.drafts if invoice.lines]
        invoice = likely[chosen % len(likely)]
        assert self.api.patch(invoice.path, {"status": "sent"}).status == 200
        invoice.status = "sent"

    @precondition(lambda self: self.issued)
    @rule(chosen=CHOICE)
    def void(self, chosen):
        invoice = self.issued[chosen % len(self.issued)]
        is_possible = all(line.left == 1 for line in invoice.lines)
        assert self.api.patch(invoice.path, {"status": "void"}).status == (200 if is_possible else 422)
        if is_possible:
            invoice.status = "void"

    @precondition(lambda self: any(invoice.live for invoice in self.issued))
    @rule(chosen=CHOICE, share=st.sampled_from(["0.5", "0.25", "1", "all"]))
    def credit(self, chosen, share):
        """Credit a line, in part or as far as it is left, or what is left of the invoice."""
        likely = [invoice for invoice in self.issued if invoice.live]
        invoice = likely[chosen % len(likely)]
        lines = [line for line in invoice.lines if line.left]
        line = lines[chosen % len(lines)]
        quantity = min(Fraction(share), line.left) if share != "all" else None
        body = {"lines": [{"invoice_line_id": line.id, "quantity": str(float(quantity))}]} if quantity else {}
        assert self.api.post(f"{invoice.path}/credit-notes", body).status == 201
        for credited in [line] if quantity else lines:
            credited.left -= quantity or credited.left

    @rule(project=st.integers(0, 1), amount=st.sampled_from(["50", "120"]), is_retainer=st.sampled_from([1, 1, 0]))
    def change_a_project(self, project, amount, is_retainer):
        changed, billing_type = self.projects[project], "retainer" if is_retainer else "time_and_materials"
        body = {"billing_type": billing_type, "retainer_amount": amount if is_retainer else None}
        assert self.api.patch(f"/projects/{changed.id}", body).status == 200
        changed.billing_type, changed.amount = billing_type, Fraction(amount)

    # What holds after every step

    @invariant()
    def what_is_due_and_what_is_billed_match_the_model(self):
        for project in self.projects:
            (row,) = self.reader.get(f"/projects/{project.id}/unbilled-work").data["rows"]
            due = [month for _, month in self.due([project])]
            assert row["fees"]["months"] == due, project
            assert Fraction(row["fees"]["amount"]) == project.amount * len(due)
        for invoice in self.invoices:
            data = self.reader.get(invoice.path).data
            months = [(line["id"], line["project_id"], line["fee_month"]) for line in data["lines"]]
            assert months == [(line.id, *line.month) for line in invoice.lines]
        live = self.api.sql("SELECT project_id, fee_month FROM invoice_lines WHERE fee_is_live = 1")
        assert sorted(map(tuple, live)) == sorted(month for invoice in self.invoices for month in invoice.live)


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("kind", first(["sqlite", "postgresql"]))
def test_every_month_is_billed_once_whatever_happens_to_its_invoice(request, kind, number):
    databases = request.getfixturevalue(f"{kind}_databases")
    run_lives(lambda: Months(databases), number, EXAMPLES, STEPS)
