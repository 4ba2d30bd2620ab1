"""The settings of an account in the console, and its logo."""

import re

from retainer.identity import accounts, audit, logos
from retainer.identity.accounts import AccountSettings
from retainer.identity.audit import AuditFilter
from tests.console.visitor import Fields, admin_of
from tests.documents.test_logo_files import SHAPE, png, svg

PATH, LOGO, BANK = "/console/settings", "/console/settings/logo", "/console/settings/bank-account"


def account_of(api):
    with api.operating() as tx:
        return accounts.get_account(tx)


def changes_of(api):
    with api.operating() as tx:
        return audit.list_entries(tx, AuditFilter(action="account changed")).entries


def test_the_page_has_every_setting_with_its_unit(visitor):
    page = visitor.get(PATH)
    named = {name for name, _ in Fields(page.html).forms[PATH]}
    assert named >= set(AccountSettings.__struct_fields__)
    for label in ("Payment terms, days", "IBAN", "BIC", "Document colour"):
        assert label in page.text


def test_sending_the_page_back_changes_nothing(api, visitor):
    before = account_of(api)
    page = visitor.submit(PATH, document_footer_en=" ")
    assert "Nothing was changed." in page.text
    assert account_of(api) == before
    assert changes_of(api) == []


def test_every_change_is_saved_and_audited(api, visitor):
    page = visitor.submit(
        PATH,
        tax_rate="19",
        iban="de89 3704 0044 0532 0130 00",
        legal_name="North GmbH",
        country="DE",
        document_language="de",
        document_color="#102030",
        document_footer_en="Managing directors:\r\nAna & Max",
        timezone="Europe/Paris",
        require_second_factor="yes",
    )
    assert page.location == "/console/profile/second-factor", "which the acting admin lacks, too"
    account = account_of(api)
    assert account["iban"] == "DE89370400440532013000"
    assert account["document_footer_en"] == "Managing directors:\nAna & Max"
    assert (account["tax_rate"], account["require_second_factor"]) == ("19", True)
    (entry,) = changes_of(api)
    assert (entry.user_id, set(entry.after)) == (
        api.admin_id,
        {
            *("tax_rate", "iban", "legal_name", "country", "document_language", "document_color", "document_footer_en"),
            *("timezone", "require_second_factor"),
        },
    )


def test_numbers_are_read_and_shown_in_the_language_of_the_account(api, visitor):
    visitor.submit(PATH, document_language="de")
    saved = visitor.submit(PATH, tax_rate="7,5", hourly_rate="1.110,50")
    assert "Settings saved." in saved.text
    account = account_of(api)
    assert (account["tax_rate"], account["hourly_rate"]) == ("7.5", "1110.50")
    typed = Fields(visitor.get(PATH).html).forms[PATH]
    assert ("tax_rate", "7,5") in typed
    assert ("hourly_rate", "1110,50") in typed
    refused = visitor.submit(PATH, hourly_rate="1,100")
    assert "Can be read in two ways." in refused.error_of("hourly_rate")
    assert 'href="#hourly_rate"' in refused.html
    assert account_of(api)["hourly_rate"] == "1110.50"


def test_all_errors_are_shown_with_what_was_typed(api, visitor):
    page = visitor.submit(PATH, iban="DE1", tax_rate="200", email="x", legal_name="Kept <b>")
    assert page.status == 422
    assert page.html.count('aria-invalid="true"') == 3
    assert "Kept &lt;b&gt;" in page.html
    assert account_of(api)["legal_name"] is None


def test_a_currency_gets_a_bank_account_of_its_own(api, visitor):
    assert "Remove the account" not in visitor.get(BANK).text
    saved = visitor.submit(BANK, currency="GBP", sort_code="200000", account_number="5577 9911")
    assert "New documents in GBP print it." in saved.text
    assert "GBP : 20-00-00 · 55779911" in visitor.get(PATH).text
    page = visitor.get(f"{BANK}?currency=GBP")
    assert ("sort_code", "20-00-00") in Fields(page.html).forms[BANK]
    assert visitor.submit(BANK, currency="GBP", sort_code="20").status == 422
    assert "Is needed with a sort code." in visitor.submit(BANK, currency="CHF", sort_code="200000").text
    assert "Bank account removed." in visitor.submit(BANK, currency="GBP", step="remove").text
    assert account_of(api)["bank_accounts"] == []
    assert changes_of(api)[0].after == {"bank_accounts": []}
    assert "Sort code 20-00-00" in visitor.get("/console/audit").text


def test_a_text_of_mail_names_only_what_its_kind_of_message_has(api, visitor):
    hints = visitor.get(PATH).text
    assert "{number}, {client}, {total} and {agency} are filled in." in hints, "a credit note has no due date"
    assert "{due_date} is the last day of the quote." in hints
    page = visitor.submit(
        *(PATH,),
        mail_credit_note_text_en="Credit note {number}, due on {due_date}: {link}",
        mail_quote_text_de="{nummer} bis {due_date}",
        mail_quote_subject_en="Look at {link}",
        mail_invoice_text_en="{number} of {total}, due on {due_date}, {balance} open: {link}",
        mail_invoice_subject_de="{iban}",
    )
    assert page.status == 422
    error = page.error_of("mail_credit_note_text_en")
    assert "A credit note has no {due_date}. Use {number}, {client}, {total} and {agency}." in error
    assert "Clients see no credit note with a link." in error
    assert "There is no {nummer}. Did you mean {number}?" in page.error_of("mail_quote_text_de")
    assert "Put {link} into the text of the message." in page.error_of("mail_quote_subject_en")
    assert "There is no {iban}. Use {number}, {client}, " in page.error_of("mail_invoice_subject_de")
    assert not page.error_of("mail_invoice_text_en")
    api.sql("UPDATE accounts SET mail_credit_note_text_en = 'On {due_date}'")
    assert "Settings saved." in visitor.submit(PATH, city="Bonn").text, "a text that was stored before stops nothing"


def test_a_preview_shows_the_next_numbers_and_saves_nothing(api, visitor):
    page = visitor.submit(PATH, invoice_number_pattern="R{YYYY}-{00000}", step="preview", city="Bonn")
    year = re.search(r"Next: R(\d{4})-00001", page.text)
    assert year, page.text
    assert 'value="Bonn"' in page.html
    assert account_of(api)["invoice_number_pattern"] == "INV-{YYYY}-{0000}"
    assert account_of(api)["city"] is None


def test_the_next_numbers_are_previewed_set_and_only_go_up(api, visitor):
    year = api.today[:4]
    page = visitor.submit(PATH, next_invoice_number="124", next_ticket_number="2000", step="preview")
    assert f"Next: INV-{year}-0124" in page.text
    assert "Next: 2000" in page.text
    assert 'value="124"' in page.html
    assert f"Next: INV-{year}-0001" in visitor.get(PATH).text
    visitor.submit(PATH, next_invoice_number="124", next_ticket_number="2000")
    page = visitor.get(PATH)
    assert f"Next: INV-{year}-0124" in page.text
    assert "Next: 2000" in page.text
    page = visitor.submit(PATH, next_invoice_number="123")
    assert 'id="next_invoice_number-error">Must be at least 124, the next number now: numbers only go up.' in page.html
    page = visitor.submit(PATH, next_invoice_number="-1")
    assert 'id="next_invoice_number-error">Enter only the running number, like 124 for 2026-124.' in page.html
    assert "Next invoice number" in visitor.get("/console/audit").text
    page = visitor.submit(PATH, city="Bonn")
    assert account_of(api)["city"] == "Bonn", page.text


def test_two_series_with_one_pattern_are_refused_beside_the_field(api, visitor):
    page = visitor.submit(PATH, quote_number_pattern="C-{00}")
    assert 'id="quote_number_pattern-error">Gives the numbers of clients, whose pattern is C-{0000}.' in page.html
    assert account_of(api)["quote_number_pattern"] == "Q-{YYYY}-{0000}"


def test_the_currency_is_a_choice_until_there_is_an_amount(api, visitor):
    assert 'name="currency"' in visitor.get(PATH).html
    visitor.submit(PATH, currency="CHF")
    assert account_of(api)["currency"] == "CHF"
    api.make("/expenses")
    assert 'name="currency"' not in visitor.get(PATH).html
    assert "The currency is CHF, fixed since the first amount." in visitor.get(PATH).text
    visitor.submit(PATH, currency="EUR", city="Bonn")
    assert (account_of(api)["currency"], account_of(api)["city"]) == ("CHF", "Bonn")


def test_plan_and_trial_cannot_be_set_by_admins(api, visitor):
    before = account_of(api)
    visitor.submit(PATH, plan="enterprise", trial_ends_at="2099-01-01T00:00:00Z", api_enabled="", logo_id="7")
    assert account_of(api) == before


def test_the_first_pages_ask_for_the_tax_rate_until_there_is_one(api, visitor):
    for path in ("/console", PATH):
        assert "Set a tax rate , or 0 if you bill without tax." in visitor.get(path).text
    visitor.submit(PATH, tax_rate="0")
    for path in ("/console", PATH):
        assert "Set a tax rate" not in visitor.get(path).text


def test_a_logo_is_shown_replaced_and_removed(api, visitor):
    assert visitor.get(f"{LOGO}/image").status == 404
    page = visitor.upload(LOGO, svg(SHAPE + "<script>alert(1)</script>"))
    assert "Logo saved." in visitor.follow(page).text
    image = visitor.get(f"{LOGO}/image")
    assert image.headers["content-type"] == "image/png"
    assert "sandbox" in image.headers["content-security-policy"]
    first = account_of(api)["logo_id"]
    with api.operating() as tx:
        logos.set_logo(tx, png())
        assert logos.find_logo(tx, first) is None
        assert logos.find_logo(tx, account_of_tx(tx)).content == png()
    assert "Logo removed." in visitor.follow(visitor.upload(LOGO, b"", step="remove")).text
    assert account_of(api)["logo_id"] is None
    assert [set(entry.after) for entry in changes_of(api)] == [{"logo"}] * 3
    assert f"A picture of {len(png())} bytes" in visitor.get("/console/audit?action=account+changed").text


def account_of_tx(tx):
    return accounts.get_account(tx)["logo_id"]


def test_a_logo_that_an_issued_document_prints_is_kept(api, visitor):
    visitor.upload(LOGO, svg(SHAPE))
    first = account_of(api)["logo_id"]
    invoice = api.make("/invoices", status="sent", lines=[{"description": "Design", "unit_price": "1"}])
    snapshot = f'{{"name":"North","logo_id":{first}}}'
    api.sql("UPDATE invoices SET issuer_snapshot = $1 WHERE id = $2", snapshot, invoice["id"])
    with api.operating() as tx:
        logos.set_logo(tx, png())
        assert logos.find_logo(tx, first) is not None
        assert logos.find_logo(tx, first + 1) is not None


def test_files_that_are_no_logo_are_refused(api, visitor):
    for content, sentence in (
        (b"", "Choose a PNG or SVG file."),
        (b"GIF89a", "neither a PNG nor an SVG"),
        (png()[:60], "damaged"),
        (svg("&b;"), "cannot be drawn"),
        *((png() + b"x" * size, "At most 200 KB") for size in (210_000, 300_000)),
    ):
        page = visitor.upload(LOGO, content)
        assert (page.status, sentence in page.text) == (422, True), page.text
    broken = visitor.call("POST", LOGO, b"x", CONTENT_TYPE="multipart/form-data; boundary=a")
    assert broken.status == 400
    assert visitor.call("POST", PATH, b"--a--", CONTENT_TYPE="multipart/form-data; boundary=a").status == 415
    assert account_of(api)["logo_id"] is None


def test_a_logo_is_of_its_account_only(both):
    north, south = both
    admin_of(north).upload(LOGO, svg(SHAPE))
    assert admin_of(south).get(f"{LOGO}/image").status == 404
    logo_id = account_of(north)["logo_id"]
    with south.operating() as tx:
        assert logos.find_logo(tx, logo_id) is None


def test_units_that_people_type_are_understood(api, visitor):
    """Signs and words after a number, an address without https://, and a next number as documents print it."""
    visitor.submit(PATH, document_language="de")
    visitor.submit(
        PATH,
        tax_rate="19 %",
        hourly_rate="98,00 €",
        payment_terms_days="14 Tage",
        website="bergmann-optik.de",
        invoice_number_pattern="{YYYY}-{000}",
        next_invoice_number=f"{api.today[:4]}-124",
    )
    account = account_of(api)
    assert [account[name] for name in ("tax_rate", "payment_terms_days", "website")] == [
        "19",
        14,
        "https://bergmann-optik.de",
    ]
    assert account["hourly_rate"] in {"98.00", 9800}
    assert (
        api.make("/invoices", status="sent", lines=[{"description": "Design", "unit_price": "9"}])["number"]
        == f"{api.today[:4]}-124"
    )


def test_hours_are_rounded_to_minutes_that_are_typed_as_minutes(api, visitor):
    page = visitor.submit(PATH, time_rounding_minutes="15 minutes")
    assert "Settings saved." in page.text
    assert "Round hours to, minutes" in page.text
    assert page.all("input", id="time_rounding_minutes")[0]["value"] == "15"


def test_all_errors_of_the_page_are_told_at_once(api, visitor):
    """Those of typing, those of kinds of values, and the rule that numbers only go up."""
    visitor.submit(PATH, next_quote_number="50")
    wrong = {
        "name": "",
        "tax_rate": "much",
        "payment_terms_days": "two weeks",
        "iban": "DE00",
        "next_quote_number": "7",
        "next_invoice_number": "R-12",
    }
    page = visitor.submit(PATH, **wrong)
    assert {name: bool(page.error_of(name)) for name in wrong} == dict.fromkeys(wrong, True)
    assert page.error_of("payment_terms_days") == "Enter days, like 14."
    assert page.error_of("next_invoice_number") == "Enter only the running number, like 124 for 2026-124."
