"""What is to bill is one figure: each page that shows it says the same, and leads to where it is billed."""

import re

from tests.databases import any_database

pytestmark = any_database


def fill(api):
    """Give a client work of every kind: 90 + 40 + 700 + 450 + 2,000 to bill, and 3,000 that is not due yet."""
    client = api.make("/clients", name="Optik", currency="EUR")["id"]
    hourly = api.make("/projects", name="Care", client_id=client, billing_type="time_and_materials")["id"]
    api.make("/time-entries", project_id=hourly, client_id=client, duration_minutes=90, hourly_rate="60")
    api.make("/expenses", project_id=hourly, client_id=client, amount="40", tax_rate="0")
    fee = {"client_id": client, "billing_type": "fixed_fee"}
    film = api.make("/projects", name="Film", **fee, fixed_fee="2700")["id"]
    api.make(f"/projects/{film}/milestones", amount="700", status="completed")
    api.patch(f"/projects/{film}", {"status": "completed"})
    api.make("/projects", name="Shop", **fee, fixed_fee="3000")
    api.make("/projects", name="Hosting", client_id=client, billing_type="retainer", retainer_amount="450")
    return client, {"Care": "130.00", "Film": "2,700.00", "Shop": "0.00", "Hosting": "450.00"}


def test_each_page_shows_the_same_figure_of_what_is_to_bill(api, visitor):
    client, _ = fill(api)
    whole = "3,280.00"
    pages = {
        "": rf"To bill {whole} EUR Optik {whole} EUR",
        "/billing-run": rf"Optik 90.00 EUR 40.00 EUR 700.00 EUR 450.00 EUR 2,000.00 EUR {whole} EUR",
        f"/records/clients/{client}": rf"To bill {whole} EUR",
        "/reports/overview": rf"To bill {whole}",
        "/reports/profitability": whole,
    }
    for path, text in pages.items():
        shown = visitor.get(f"/console{path}").text
        assert re.search(text, shown), (path, shown)
    assert "3,000.00 EUR of fixed fees whose projects are not completed" in visitor.get("/console/billing-run").text
    assert f"/console/records/clients/{client}/bill" in visitor.get("/console").links


def test_each_project_shows_its_part_in_the_list_and_on_its_page(api, visitor):
    _, projects = fill(api)
    text = visitor.get("/console/records/projects").text
    for project in api.get("/projects").data:
        amount = projects[project["name"]]
        assert f"To bill {amount} EUR" in visitor.get(f"/console/records/projects/{project['id']}").text
        assert amount == "0.00" or f"{amount} EUR" in text
