"""The page of reminders: it says what will be sent before anything is, and keeps the texts that are changed."""

import pytest
import time_machine

from retainer.mail import stages

PATH = "/console/settings/reminders"
LINES = [{"description": "Design", "unit_price": "500"}]


@pytest.fixture(autouse=True)
def clock():
    """Noon of a day in May."""
    with time_machine.travel("2026-05-04T10:00:00Z", tick=False) as traveller:
        yield traveller


@pytest.fixture
def overdue(api):
    """Invoices that are 40, 7 and 6 days late, and one that is not."""
    for due_date in ("2026-03-25", "2026-04-27", "2026-04-28", "2026-05-30"):
        api.make("/invoices", issue_date="2026-01-02", due_date=due_date, lines=LINES, status="sent")


def stored(api):
    with api.operating() as tx:
        return stages.load_reminders(tx)


def test_an_admin_sees_how_many_invoices_get_a_reminder_before_any_does(api, visitor, overdue):
    assert 'href="/console/settings/reminders"' in visitor.get("/console/settings").html
    page = visitor.get(PATH)
    assert "Reminders are off. Overdue now: 3 invoices." in page.text
    assert "On 5 May 2026 at 06:00, 2 invoices get one." in page.text
    saved = visitor.submit(PATH, is_on="yes")
    assert "Saved. On 5 May 2026 at 06:00, 2 invoices get one." in saved.text
    assert "Reminders have been on since 4 May 2026" in saved.text
    found = stored(api)
    assert [each.days_after_due for each in found.stages] == [7, 21, 35]
    assert {each.subject_de for each in found.stages} == {None}, "our texts stay ours"
    assert "Reminders are off." in visitor.submit(PATH, is_on="no").text
    assert stored(api).since is None


def test_own_texts_are_kept_and_blank_days_remove_a_reminder(api, visitor):
    texts = {"subject_en_1": "Please pay {number}", "text_de_1": "Hallo {client},\r\nbitte {balance} zahlen."}
    visitor.submit(PATH, is_on="yes", days_after_due_1="3", days_after_due_2="", days_after_due_3="", **texts)
    (stage,) = stored(api).stages
    assert (stage.days_after_due, stage.subject_en, stage.text_en) == (3, "Please pay {number}", None)
    assert stage.text_de == "Hallo {client},\nbitte {balance} zahlen."
    assert "Nothing was changed." in visitor.submit(PATH).text


def test_wrong_stages_are_said_beside_their_fields_and_nothing_is_saved(api, visitor):
    page = visitor.submit(PATH, is_on="yes", days_after_due_1="400", days_after_due_3="21", days_after_due_5="soon")
    assert page.status == 422
    assert "365" in page.error_of("days_after_due_1")
    assert "Must be later than the reminder before it." in page.error_of("days_after_due_3")
    assert page.error_of("days_after_due_5")
    empty = visitor.submit(PATH, is_on="yes", days_after_due_1="", days_after_due_2="", days_after_due_3="")
    assert "at least one reminder" in empty.error_of("days_after_due_1")
    assert stored(api) == ((), None)


def test_a_text_names_only_what_a_reminder_has(api, visitor):
    assert "{link} becomes the address of a page on which the client sees the invoice." in visitor.get(PATH).text
    page = visitor.submit(PATH, is_on="yes", text_en_1="Pay {amount}: {link}", subject_de_2="{balence}")
    assert "There is no {amount}. " in page.error_of("text_en_1")
    assert "There is no {balence}. Did you mean {balance}?" in page.error_of("subject_de_2")
    assert stored(api) == ((), None)


def test_without_a_mail_server_the_page_says_so(api, visitor, monkeypatch):
    monkeypatch.setattr(api.store, "mail_from", "")
    assert "This server sends no mail, so it sends no reminders either." in visitor.get(PATH).text


def test_only_admins_open_the_page(person):
    assert person("manager").get(PATH).status == 403


def test_a_client_and_an_invoice_can_be_left_out_in_their_forms(api, visitor):
    client = api.make("/clients", name="Bergmann Optik")["id"]
    invoice = api.make("/invoices", client_id=client, lines=LINES, status="sent")["id"]
    for kind, record in (("clients", client), ("invoices", invoice)):
        assert visitor.submit(f"/console/records/{kind}/{record}/edit", reminders="no").status == 200
        assert api.get(f"/{kind}/{record}").data["reminders"] is False
