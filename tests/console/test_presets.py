"""What a page fills in, it accepts: every form posts back as it is, without an error and without a change."""

from typing import Any

import pytest

from retainer.console.actions.offers import ACTIONS
from tests.console.test_actions import LINES
from tests.console.test_editing import KINDS
from tests.console.visitor import Fields, Visitor, WebPage, admin_of
from tests.factories import ApiClient
from tests.length import TURN, by_turns, sampled

AMOUNTS = {"EUR": "1234.56", "JPY": "1235", "KWD": "12.345"}
SETTINGS = [(currency, language) for currency in AMOUNTS for language in ("en", "de")]
DAY = "2026-03-10"


def steps(api: ApiClient, path: str, record: dict[str, Any], *changes: dict[str, Any]) -> int:
    for change in changes:
        answer = api.patch(f"{path}/{record['id']}", change)
        assert answer.status == 200, answer
    return int(record["id"])


def credited(api: ApiClient, number: int, **body: Any) -> int:
    assert api.post(f"/invoices/{number}/credit-notes", body).status == 201
    return number


def records(api: ApiClient, currency: str) -> dict[str, list[int]]:
    """Records of each kind, in every state that its actions tell apart."""
    amount, zone = AMOUNTS[currency], "2026-03-10T09:30:15.123456Z"
    client = api.make("/clients", hourly_rate=amount, country="DE", email="jo@elbe.example")["id"]
    lines = [{**line, "unit_price": amount} for line in LINES]
    project = api.make("/projects", client_id=client, hourly_rate=amount, budget_amount=amount, due_date=DAY)["id"]
    retainer = api.make("/projects", client_id=client, billing_type="retainer", retainer_amount=amount)["id"]
    for each in (project, retainer):
        api.make("/time-entries", project_id=each, client_id=client, hourly_rate=amount, date=DAY)

    def invoice(*changes: dict[str, Any]) -> int:
        return steps(api, "/invoices", api.make("/invoices", client_id=client, lines=lines), *changes)

    def quote(*changes: dict[str, Any]) -> int:
        return steps(api, "/quotes", api.make("/quotes", client_id=client, lines=lines), *changes)

    sent, paid = {"status": "sent"}, {"status": "paid"}
    part = {"record_payment": {"amount": amount, "reference": "A1"}}
    made = {
        "clients": [client],
        "projects": [project, retainer],
        "expenses": [api.make("/expenses", amount=amount, client_id=client, project_id=project)["id"]],
        "invoices": [
            *(invoice(), invoice(sent), invoice(sent, part), invoice(sent, paid)),
            *(invoice(sent, {"status": "written_off"}), invoice(sent, {"status": "void"})),
            credited(api, invoice(sent, part), amount={"EUR": "1.10", "JPY": "11", "KWD": "1.105"}[currency]),
            credited(api, invoice(sent, paid)),
        ],
        "quotes": [
            *(quote(), quote(sent), quote(sent, {"status": "accepted"}), quote(sent, {"status": "declined"})),
        ],
        "tickets": [api.make("/tickets", due_at=zone)["id"]],
        "tasks": [api.make("/tasks", due_date=DAY, project_id=project, client_id=client)["id"]],
        "sites": [api.make("/sites", url=f"https://{host}.example", monitoring_enabled=on)["id"]
                  for host, on in (("one", True), ("two", False))],
        "time-entries": [
            api.make("/time-entries", project_id=project, client_id=client, hourly_rate=amount, date=DAY)["id"],
            api.make("/time-entries", duration_minutes=None, started_at=zone, ended_at="2026-03-10T11:00:07Z")["id"],
        ],
    }  # fmt: skip
    milestone = api.post(f"/projects/{retainer}/milestones", {"name": "Launch", "amount": amount, "due_date": DAY})
    return made | {"milestones": [milestone.data["id"]] if milestone.status == 201 else []}


def errors(page: WebPage) -> str:
    return " ".join(each.text for each in page.all("p", "error")) + " ".join(
        each.text for each in page.all("div section", role="alert")
    )


def posted_back(visitor: Visitor, path: str, **others: str) -> WebPage | None:
    """Send the form of a page as it is; None if the page has no form."""
    page = visitor.get(path)
    assert page.status == 200, (path, page.text)
    form = Fields(page.html).forms.get(path.partition("?")[0])
    if form is None:
        return None
    assert "error" not in errors(page), path
    return visitor.post(path.partition("?")[0], [*form, *others.items()])


@pytest.mark.parametrize(("currency", "language"), by_turns(SETTINGS))
def test_what_a_page_fills_in_it_accepts(api, currency, language):
    api.set_account({"currency": currency, "document_language": language, "timezone": "Europe/Berlin"})
    visitor, made = admin_of(api), records(api, currency)
    wrong: dict[str, tuple[int, str]] = {}
    kept = api.sql("SELECT max(id) FROM audit_entries")
    for kind, ids in made.items():
        for record in ids:
            here = f"/console/records/{kind}/{record}"
            answer = posted_back(visitor, f"{here}/edit")
            if answer is None or answer.status != 303 or "Nothing was changed." not in visitor.follow(answer).text:
                wrong[f"{here}/edit"] = (answer.status, answer.text) if answer else (0, "no form")
            for action in ACTIONS.get(kind, ()):
                typed = {"body": "Thanks."} if action.path == "reply" else {}
                answer = posted_back(visitor, f"{here}/{action.path}", step="preview", **typed)
                if answer and (answer.status != 200 or errors(answer)):
                    wrong[f"{here}/{action.path}"] = (answer.status, errors(answer) or answer.text)
    assert wrong == {}
    assert api.sql("SELECT max(id) FROM audit_entries") == kept


@pytest.mark.parametrize(("currency", "language"), SETTINGS)
def test_what_is_due_is_paid_and_paid_back_as_the_page_says(api, currency, language):
    api.set_account({"currency": currency, "document_language": language})
    visitor = admin_of(api)
    made = api.make(
        "/invoices", lines=[{"description": "Design", "unit_price": AMOUNTS[currency], "tax_rate": "0"}], status="sent"
    )
    path = f"/console/records/invoices/{made['id']}"
    assert " recorded on " in visitor.submit(f"{path}/payment").text
    assert api.get(f"/invoices/{made['id']}").data["status"] == "paid"
    credited(api, made["id"])
    assert "Refund of " in visitor.submit(f"{path}/refund").text
    assert api.get(f"/invoices/{made['id']}").data["refund_due"] in {"0", "0.00", "0.000"}


@pytest.mark.parametrize("kind", sampled(KINDS, 4, TURN))
def test_a_form_with_what_a_link_has_filled_in_is_accepted(api, visitor, kind):
    project = api.make("/projects", client_id=api.make("/clients")["id"])
    for link in visitor.get(f"/console/records/projects/{project['id']}").links:
        path = link.partition("?")[0]
        if path == f"/console/records/{kind}/new" and "?" in link:
            form = [*Fields(visitor.get(link).html).forms[path], ("step", "")]
            refused = visitor.post(path, form)
            wrong = {each["id"].removesuffix("-error"): each.text for each in refused.all("p", "error")}
            assert not {name for name, text in form if text and name in wrong}, (link, wrong)
