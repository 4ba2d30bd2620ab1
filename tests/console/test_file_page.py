"""The PDF and the e-invoice of a record in the console."""

from tests.console.visitor import Fields

LINE = {"description": "Design", "quantity": "10", "unit_price": "10", "tax_rate": "19"}


def test_draft_has_a_preview(api, visitor):
    draft = api.make("/invoices", lines=[LINE])
    path = f"/console/records/invoices/{draft['id']}"
    assert "Preview" in visitor.get(path).text
    page = visitor.get(f"{path}/pdf")
    assert (page.status, page.headers["content-type"]) == (200, "application/pdf")
    assert page.html.startswith("%PDF-1.7")


def test_pages_of_a_draft_show_its_warnings(api, visitor):
    address = {"address_line1": "Hafenstraße 12", "city": "Hamburg", "country": "DE"}
    api.set_account(address | {"vat_number": "DE123456788"})
    client = api.make("/clients", name="Bergmann Optik", **address)
    for kind in ("invoices", "quotes"):
        path = f"/console/records/{kind}/{api.make(f'/{kind}', client_id=client['id'], lines=[LINE])['id']}"
        pages = [path, f"{path}/issue"] if kind == "invoices" else [path]
        warning = "Bergmann Optik has no country, which decides about tax. Set the client's country."
        api.patch(f"/clients/{client['id']}", {"country": None})
        for page in pages:
            assert warning in visitor.get(page).text
        api.patch(f"/clients/{client['id']}", {"country": "DE"})
        for page in pages:
            assert "Check this before the document is sent" not in visitor.get(page).text


def test_issued_invoice_has_the_file_of_the_api(api, visitor):
    invoice = api.make("/invoices", status="sent", lines=[LINE])
    path = f"/records/invoices/{invoice['id']}"
    assert "Preview PDF" not in visitor.get(f"/console{path}").text
    sent = api.get(f"/invoices/{invoice['id']}", headers={"Accept": "application/pdf"}).body
    assert visitor.get(f"/console{path}/pdf").html == sent.decode(errors="replace")


def test_what_an_einvoice_lacks_is_said_on_a_page(api, visitor):
    invoice = api.make("/invoices", status="sent", lines=[LINE])
    page = visitor.get(f"/console/records/invoices/{invoice['id']}/xml")
    assert page.status == 422
    assert "The agency has no country: add it in the console under Settings." in page.text


def test_the_settings_have_a_preview_of_an_invoice_that_leaves_nothing_behind(api, visitor):
    api.set_account({"bank_name": "Nordbank"})
    path = "/console/settings"
    form = [pair for pair in Fields(visitor.get(path).html).forms[path] if pair[0] != "document_footer_en"]
    page = visitor.post(path, [*form, ("document_footer_en", "Thanks a lot"), ("step", "sample")])
    assert "Thanks a lot" not in visitor.get(path).html
    assert (page.status, page.headers["content-type"]) == (200, "application/pdf")
    for path in ("/clients", "/invoices", "/events"):
        assert api.get(path).data == []
    assert "Sample client" not in visitor.get("/console/audit").text


def test_other_records_have_no_files(api, visitor):
    client = api.make("/clients")
    assert visitor.get(f"/console/records/clients/{client['id']}/pdf").status == 404
    quote = api.make("/quotes", lines=[LINE])
    assert visitor.get(f"/console/records/quotes/{quote['id']}/xml").status == 404
