"""A month at a desk of the console: its jobs, whose clicks are counted, and figures that must agree on all pages."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import pypdf

from tests.browser.desks import Desk
from tests.console.visitor import PASSWORD
from tests.factories import ApiClient

AMOUNT = r"[\d,]+\.\d\d"


class Month:
    """An agency's month at a desk, with the clicks of each job that was done."""

    def __init__(self, api: ApiClient, desk: Desk, limits: dict[str, int]) -> None:
        """Begin a month in which jobs cost no more clicks than these."""
        self.api, self.desk, self.limits, self.clicks = api, desk, limits, dict[str, int]()

    @contextmanager
    def job(self, name: str, start: str = "/console") -> Iterator[None]:
        """Do a job from a page on, at most with as many clicks as its limit."""
        self.desk.open(start)
        before = self.desk.clicks
        yield
        assert 'role="status"' in self.desk.html, self.desk.text[:1000]
        self.clicks[name] = self.desk.clicks - before
        assert self.clicks[name] <= self.limits[name], f"To {name} costs {self.clicks[name]} clicks."

    def found(self, pattern: str) -> str:
        """Return what the page has of a pattern's group, or of the whole pattern."""
        match = re.search(pattern, self.desk.html)
        assert match, f"no {pattern} on {self.desk.path}: {self.desk.text}"
        return match[match.re.groups]

    def says(self, text: str) -> None:
        assert text in self.desk.text, self.desk.text[:1000]

    def enter(self, link: str) -> None:
        """Set the password with a link; who does so is signed in."""
        self.desk.open(link)
        self.desk.send("/console/password", password=PASSWORD, again=PASSWORD)

    def sign_in(self) -> None:
        """Sign in as the admin."""
        self.desk.open("/console/sign-in")
        self.desk.send("/console/sign-in", email="ana@north.example", password=PASSWORD)

    def create(self, kind: str, query: str = "", **fields: str) -> str:
        """Create a record with its form; return its path, which the next page is at."""
        path = f"/console/records/{kind}/new"
        self.desk.open(f"{path}?{query}")
        return self.save(path, **fields)

    def save(self, path: str, **fields: str) -> str:
        self.desk.send(path, **fields)
        assert 'role="status"' in self.desk.html, self.desk.text[:1000]
        return self.desk.path

    def act(self, action: str, record: str = "", **fields: str) -> None:
        """Do what a record offers, by default the open one, on its page or on that of the action."""
        if record:
            self.desk.open(record)
        path = f"{self.desk.path}/{action}"
        if f'action="{path}"' not in self.desk.html:
            self.desk.follow(path)
        self.desk.send(path, **fields)
        if "check it, then confirm" in self.desk.text:
            self.desk.send(path)
        assert 'role="status"' in self.desk.html, self.desk.text[:1000]

    def agree(self) -> tuple[Decimal, Decimal]:
        """Compare every figure of what is to bill, and what was billed with what became of it; return both."""
        clients = [client["id"] for client in self.api.get("/clients").data]
        projects = [project["id"] for project in self.api.get("/projects").data]
        (money,) = self.api.get("/reports/overview").data["money"]
        (profit,) = self.api.get("/reports/project-profitability").data["totals"]
        by_page = [
            *map(self.to_bill, ("", "/billing-run", "/reports/overview")),
            sum((self.to_bill(f"/records/clients/{client}") for client in clients), Decimal(0)),
            sum((self.to_bill(f"/records/projects/{project}") for project in projects), Decimal(0)),
        ]
        by_api = [Decimal(money["to_bill"]), Decimal(profit["to_bill_amount"])]
        assert {*by_page, *by_api} == {by_page[0]}, (by_page, by_api)
        signs = {"revenue": 1, "tax": 1, "collected": -1, "outstanding": -1, "refund_due": 1, "written_off": -1}
        amounts = {name: Decimal(money[name]) for name in signs}
        assert sum(amounts[name] * sign for name, sign in signs.items()) == 0, amounts
        return by_page[0], amounts["revenue"] + amounts["tax"]

    def to_bill(self, page: str) -> Decimal:
        """Return what a page says is to bill: the sum of the billing run's column, elsewhere one amount."""
        read = self.desk.read(f"/console{page}")
        assert read.status == 200
        if page == "/billing-run":
            amounts = re.findall(rf'data-label="To bill">({AMOUNT})\sEUR', read.html)
        else:
            amounts = re.findall(rf"To bill\s*({AMOUNT})", read.text)[:1]
        return sum((Decimal(amount.replace(",", "")) for amount in amounts), Decimal(0))

    def pdf_text(self, invoice: str) -> str:
        """What the PDF of an invoice says."""
        path = invoice.removeprefix("/console/records")
        answer = self.api.get(path, headers={"Accept": "application/pdf"})
        return " ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(answer.body)).pages)
