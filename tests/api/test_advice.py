"""What a refusal says after a slip: it names the slip, and where to go from there."""

import re

import pytest

RECORD_PAYMENT = "PATCH /invoices/{invoice_id} with `record_payment` or `record_refund` records one."


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("/time_entries", "Did you mean /time-entries?"),
        ("/Clients", "Did you mean /clients?"),
        ("/client", "Did you mean /clients?"),
        ("/contacts", "Did you mean /external-contacts?"),
        ("/quote/7", "Did you mean /quotes/7?"),
        ("/report/overview", "Did you mean /reports/overview?"),
        ("/api/public/v1/clients/7", "Did you mean /clients/7?"),
        ("/milestones", "Did you mean /projects/{project_id}/milestones?"),
        ("/lines", "Did you mean /quotes/{quote_id}/lines?"),
        ("/clients/7/projects", "Did you mean /projects?"),
        ("/projects/7/time_entries", "Did you mean /time-entries?"),
        ("/reports", "Did you mean /reports/tax?"),
        ("/quotes/7/accept", "Did you mean /quotes/7?"),
        ("/tickets/7/replies/8", "Did you mean /tickets/7/replies?"),
        ("/invoices/7/payments", "Did you mean /payments?"),
        ("/webhook", "Did you mean /webhooks?"),
        ("/gadgets", "The paths of the API are at /docs."),
        ("/", "The paths of the API are at /docs."),
        ("", "The paths of the API are at /docs."),
        ("/" + "clients" * 300, "The paths of the API are at /docs."),
        ("/clients/7/", "Remove the trailing slash."),
    ],
)
def test_an_unknown_path_names_the_nearest_one_or_what_does_the_job(api, path, advice):
    answer = api.get(path)
    assert (answer.status, answer.code) == (404, "not_found")
    assert answer.json["message"].startswith(f"There is nothing at this path. {advice}")


@pytest.mark.parametrize(
    ("method", "path", "advice"),
    [
        ("POST", "/invoices/7/payments", RECORD_PAYMENT),
        ("POST", "/invoices/7/issue", "Send POST /invoices to create, or PATCH /invoices/{invoice_id} to change."),
        ("PUT", "/tickets/7/close", "Did you mean /tickets/7?"),
        ("POST", "/invoices/7/link", "Did you mean /invoices/7/links?"),
    ],
)
def test_an_unknown_path_leads_to_one_that_takes_the_method(api, method, path, advice):
    answer = api.call(method, path, {})
    assert (answer.status, answer.json["message"]) == (404, f"There is nothing at this path. {advice}")


@pytest.mark.parametrize(
    ("method", "path", "advice"),
    [
        ("GET", "/invoices/7/lines", "Send GET /invoices/{invoice_id} instead."),
        ("GET", "/invoices/7/lines/8", "Send GET /invoices/{invoice_id} instead."),
        ("GET", "/quotes/7/lines", "Send GET /quotes/{quote_id} instead."),
        ("GET", "/invoices/7/credit-notes", "Send GET /invoices/{invoice_id} instead."),
        ("GET", "/tags/7", "Send GET /tags instead."),
        ("GET", "/projects/7/milestones/8", "Send GET /projects/{project_id}/milestones instead."),
        ("POST", "/credit-notes", "Send POST /invoices/{invoice_id}/credit-notes instead."),
        ("POST", "/payments", RECORD_PAYMENT),
        ("POST", "/clients/7", "Send POST /clients to create, or PATCH /clients/{client_id} to change."),
        ("POST", "/invoices/7", "Send POST /invoices to create, or PATCH /invoices/{invoice_id} to change."),
        ("POST", "/users", "Admins add people in the console."),
        ("PATCH", "/clients", "Send PATCH /clients/{client_id} instead."),
        ("DELETE", "/projects/7/milestones", "Send DELETE /projects/{project_id}/milestones/{milestone_id} instead."),
        ("PATCH", "/invoices/7/lines/8", ""),
        ("PUT", "/projects/7/milestones/8", ""),
        ("PUT", "/quotes/7/lines", ""),
        ("PATCH", "/tickets/7/replies", ""),
        ("DELETE", "/invoices/7/lines", "Send DELETE /invoices/{invoice_id}/lines/{line_id} instead."),
        ("DELETE", "/invoices/7/credit-notes", ""),
        ("DELETE", "/credit-notes/7", ""),
        ("DELETE", "/me", ""),
    ],
)
def test_a_405_names_the_methods_of_the_path_and_the_path_of_the_method(api, method, path, advice):
    answer = api.call(method, path)
    assert (answer.status, answer.code) == (405, "method_not_allowed")
    taken = f"This path does not support {method}. Supported: {answer.headers['allow']}."
    assert answer.json["message"].startswith(f"{taken} {advice}".strip())
    assert advice or answer.json["message"] == taken


AMOUNT = 'Must be an amount from -1000000000000 to 1000000000000, like "120.00"'
DAY = "Must be a date like 2026-03-31"
COMMA = "this has a comma. Use a decimal point and no thousands separators."
AT = "line 1, column 2"
MOMENT = "Must be a timestamp with an offset, like 2026-03-31T14:30:00Z"


@pytest.mark.parametrize(
    ("path", "field", "value", "message"),
    [
        ("/expenses", "amount", "12.50556", f"{AMOUNT}; this has 5 decimal places."),
        ("/expenses", "amount", 0.000001, f"{AMOUNT}; this has 6 decimal places."),
        ("/expenses", "amount", "12,50", f"{AMOUNT}; {COMMA}"),
        ("/expenses", "amount", "9999999999999", f"{AMOUNT}; this is too large."),
        ("/expenses", "amount", "99999999999999999999", f"{AMOUNT}; this has too many digits."),
        ("/expenses", "amount", -(10**13), f"{AMOUNT}; this is too small."),
        ("/expenses", "amount", "€ 12", f"{AMOUNT}."),
        ("/expenses", "amount", True, f"{AMOUNT}."),
        (
            "/clients",
            "tax_rate",
            "19%",
            'Must be a percentage from 0 to 100 with at most 3 decimal places, like "7.5".',
        ),
        ("/expenses", "date", "2026-02-30", f"{DAY}; 2026-02-30 does not exist."),
        ("/expenses", "date", "2026-13-01", f"{DAY}; 2026-13-01 does not exist."),
        ("/expenses", "date", "2026-03-31T00:00:00Z", f"{DAY}; this has a time. Remove it."),
        ("/expenses", "date", "2026-03-31 10:00", f"{DAY}; this has a time. Remove it."),
        ("/expenses", "date", "31.03.2026", f"{DAY}."),
        ("/expenses", "date", 1774967460, f"{DAY}."),
        ("/tickets", "due_at", "2026-03-31", f"{MOMENT}; this has no time."),
        ("/tickets", "due_at", "2026-03-31T10:00:00", f"{MOMENT}; this has no offset. Add Z for UTC."),
        ("/tickets", "due_at", "2026-02-30T10:00:00Z", f"{MOMENT}; this time does not exist."),
        ("/tickets", "due_at", "2026-03-31T25:00:00Z", f"{MOMENT}; this time does not exist."),
        (
            "/clients",
            "payment_terms_days",
            "14",
            "Must be a whole number from 0 to 365; this is text. Leave out the quotes.",
        ),
        ("/clients", "payment_terms_days", 14.5, "Must be a whole number from 0 to 365."),
        ("/clients", "payment_terms_days", "soon", "Must be a whole number from 0 to 365."),
        ("/tickets", "assignee_id", "5", 'Must be the id of a user, or "me"; this is text. Leave out the quotes.'),
        ("/tickets", "assignee_id", "Me", 'Must be the id of a user, or "me".'),
        ("/projects", "is_template", "true", "Must be true or false; this is text. Leave out the quotes."),
        ("/clients", "name", 5, "Must be text of 1 to 191 characters; this is a number. Put it in quotes."),
        ("/clients", "status", "Active", "Must be one of: prospect, active, archived; did you mean active?"),
        ("/clients", "status", "activ", "Must be one of: prospect, active, archived; did you mean active?"),
        ("/clients", "status", "gone", "Must be one of: prospect, active, archived."),
        ("/clients", "currency", "eur", "Must be an ISO 4217 currency code, like EUR; did you mean EUR?"),
        ("/clients", "country", "AUT", "Must be a two-letter ISO 3166-1 country code, like DE."),
        ("/clients", "country", "de", "Must be a two-letter ISO 3166-1 country code, like DE; did you mean DE?"),
        ("/clients", "tag_ids", 1, "Must be a list; put a single value in brackets."),
    ],
)
def test_a_value_that_is_not_taken_says_what_is_wrong_with_it(api, path, field, value, message):
    assert api.post(path, api.recipe(path) | {field: value}).errors == {field: [message]}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("client_id=-1", "Must be a whole number from 1 to 9007199254740991."),
        ("client_id=12345678901234567890", "Must be a whole number from 1 to 9007199254740991."),
        ("issue_date_from=2026-02-30", f"{DAY}; 2026-02-30 does not exist."),
        (
            "status=Draft",
            "Must be one of: draft, sent, partially_paid, paid, void, written_off, overdue, open; did you",
        ),
        ("statuss=draft", "Unknown parameter. Did you mean status? Valid are: page, per_page, "),
        ("status[]=draft", "Unknown parameter. Did you mean status? Valid are: page, per_page, "),
        ("limit=5", "Unknown parameter. Did you mean per_page? Valid are: page, per_page, "),
        ("page_size=5", "Unknown parameter. Did you mean per_page? "),
        ("updated_after=2026-01-01", "Unknown parameter. Did you mean updated_since? "),
        ("order_by=number", "Unknown parameter. Did you mean sort? "),
        ("search=Optik", "Unknown parameter. Did you mean q? "),
        ("expand=client", "Unknown parameter. Did you mean include? "),
        ("gadgets=5", "Unknown parameter. Valid are: page, per_page, "),
        (
            "sort=totl",
            "Must be a comma-separated list of: created_at, issue_date, due_date, number, total, balance_due,",
        ),
    ],
)
def test_a_parameter_that_is_not_taken_says_what_is_wrong_with_it(api, query, message):
    (errors,) = api.get("/invoices", query).errors.values()
    assert errors[0].startswith(message)


@pytest.mark.parametrize(
    ("query", "end"),
    [
        ("sort=-totl", "; a minus sign sorts descending. totl is none of them: did you mean total?"),
        ("sort=gadgets", "; a minus sign sorts descending. gadgets is none of them."),
        ("include=clients", ". clients is none of them: did you mean client?"),
        ("fields=id,nmber,total", ". nmber is none of them: did you mean number?"),
        ("fields=nmber,x,id", ". nmber is none of them: did you mean number? x is none of them."),
        (f"fields={','.join('abcdefg')}", " e is none of them. 2 more are none of them."),
        ("status=draft,opn,gone", ". opn is none of them: did you mean open? gone is none of them."),
        ("client_id=1,two,2,", ". Correct two, the empty one."),
        ("quote_id=1,two", "Correct two."),
        ("fields=" + "x" * 500, f". {'x' * 100}... is none of them."),
    ],
)
def test_a_list_of_names_names_the_one_that_is_wrong(api, query, end):
    ((message,),) = api.get("/invoices", query).errors.values()
    assert message.endswith(end)


@pytest.mark.parametrize(
    ("path", "sent", "meant"),
    [("/tasks", "name", "title"), ("/tickets", "title", "subject"), ("/projects", "title", "name")],
)
def test_a_field_is_suggested_by_its_name_in_other_programs(api, path, sent, meant):
    body = {name: value for name, value in api.recipe(path).items() if name != meant}
    assert api.post(path, body | {sent: "Shop"}).errors[sent] == [f"Unknown field. Did you mean {meant}?"]


def test_a_locked_field_says_what_helps(api):
    invoice = api.make("/invoices", status="sent", lines=[{"description": "Design", "unit_price": "98"}])
    quote = api.make("/quotes", status="accepted", lines=[{"description": "Design", "unit_price": "98"}])
    advice = "Correct an issued invoice with a credit note: POST /invoices/{invoice_id}/credit-notes."
    assert api.patch(f"/invoices/{invoice['id']}", {"lines": []}).errors["lines"][0].endswith(f"is sent. {advice}")
    advice = 'Set its status to draft first: PATCH /quotes/{quote_id} with {"status": "draft"}.'
    assert api.patch(f"/quotes/{quote['id']}", {"lines": []}).errors["lines"][0].endswith(f"is accepted. {advice}")


@pytest.mark.parametrize("status", ["sent", "accepted", "declined", "cancelled"])
def test_what_helps_to_change_the_lines_of_a_quote_is_allowed(api, status):
    quote = api.make("/quotes", status=status, lines=[{"description": "Design", "unit_price": "98"}])
    path, line = f"/quotes/{quote['id']}", {"description": "Texts", "unit_price": "50"}
    refusals = [api.post(f"{path}/lines", line), api.delete(f"{path}/lines/{quote['lines'][0]['id']}")]
    sentences = [text for refused in refusals for text in refused.errors["quote"]]
    sentences += api.patch(path, {"lines": []}).errors["lines"]
    (steps,) = {tuple(re.findall(r'"status": "(\w+)"', sentence)) for sentence in sentences}
    assert steps == (("cancelled", "draft") if status == "sent" else ("draft",))
    for step in steps:
        assert api.patch(path, {"status": step}).status == 200
    assert api.post(f"{path}/lines", line).status == 201


@pytest.mark.parametrize("moment", ["created", "updated"])
@pytest.mark.parametrize(
    ("end", "meant"), [("after", "since"), ("from", "since"), ("to", "before"), ("until", "before")]
)
def test_an_end_of_a_period_is_suggested_and_not_its_other_end(api, moment, end, meant):
    ((message,),) = api.get("/clients", {f"{moment}_{end}": "2026-03-01"}).errors.values()
    assert message.startswith(f"Unknown parameter. Did you mean {moment}_{meant}?")


def test_many_unknown_fields_get_few_suggestions_and_one_list_of_the_valid_ones(api):
    misspelt = {f"{'x' * number}client_id": 1 for number in range(1, 10)}
    odd = {f"zzz{number}": 1 for number in range(500)}
    client = api.make("/clients")["id"]
    answer = api.post("/invoices", {"client_id": client} | misspelt | odd | {"lines": [odd, odd]})
    messages = [message for field in answer.errors.values() for message in field]
    assert len(messages) == 20, "they are of one kind, on the invoice and on its lines"
    assert messages[:5] == ["Unknown field. Did you mean client_id?"] * 5
    assert messages[5].startswith("Unknown field. Valid are: client_id, ")
    assert messages[6:] == ["Unknown field."] * 14
    assert answer.json["message"].endswith("(and 1508 more errors, of which 1489 are not listed)")


def test_the_valid_fields_of_a_record_and_of_its_lines_are_listed_once_each(api):
    body = {"client_id": 1, "zzz": 1, "yyy": 1, "lines": [{"zzz": 1}, {"zzz": 1}]}
    errors = {field: message for field, (message,) in api.post("/invoices", body).errors.items() if "zz" in field}
    assert "purchase_order" in errors["zzz"]
    assert "time_entry_ids" in errors["lines.0.zzz"]
    assert errors["lines.1.zzz"] == "Unknown field."


def test_the_name_of_an_unknown_field_is_repeated_in_short(api):
    answer = api.post("/clients", {"name": "Optik", "x" * 60_000: 1})
    assert list(answer.errors) == ["x" * 100 + "..."]


def test_many_wrong_values_of_one_list_hide_no_other_error(api):
    wrong = {"time_entry_ids": [0] * 1000, "quantity": "many"}
    answer = api.post("/invoices", {"client_id": "x", "lines": [wrong] * 3, "due_date": "soon"})
    fields = [field for field in answer.errors if "time_entry_ids" not in field]
    assert fields == ["client_id", "lines.0.quantity", "lines.1.quantity", "lines.2.quantity", "due_date"]
    assert len(answer.errors) == 20 + len(fields)
    assert "not listed" in answer.json["message"]


def test_errors_of_rules_are_counted_too_if_they_are_many(api):
    client = api.make("/clients")["id"]
    answer = api.post("/invoices", {"client_id": client, "lines": [{"time_entry_ids": list(range(1, 101))}]})
    assert [*answer.errors] == [f"lines.0.time_entry_ids.{position}" for position in range(20)]
    assert answer.json["message"].endswith("(and 99 more errors, of which 80 are not listed)")


def test_many_unknown_parameters_get_one_list_of_the_valid_ones(api):
    answer = api.get("/clients", "&".join(f"zzz{number}=1" for number in range(190)) + "&page=x")
    assert sum("Valid are" in message for (message,) in answer.errors.values()) == 1
    assert (len(answer.errors), answer.code, "page" in answer.errors) == (21, "unknown_parameter", True)


def test_that_one_of_several_fields_is_needed_is_said_once(api):
    client = api.make("/clients")["id"]
    assert api.post("/external-contacts", {"client_id": client}).errors == {
        "first_name": ["Give at least one of first_name, last_name and email."]
    }
    assert api.post("/time-entries", {"duration_minutes": 90}).errors == {
        "client_id": ["Give at least one of client_id, project_id, ticket_id and task_id."]
    }


def test_a_record_in_a_field_of_its_own_is_not_taken_for_another_field(api):
    (message,) = api.post("/clients", {"client": {"name": "Nordwind"}}).errors["client"]
    assert message.startswith("Unknown field. Valid are: name, "), "city is no nearer than many words"


def test_one_of_several_fields_is_not_missed_when_the_name_of_one_is_misspelt(api):
    client = api.make("/clients")["id"]
    misspelt = {"lastname": ["Unknown field. Did you mean last_name?"]}
    assert api.post("/external-contacts", {"client_id": client, "lastname": "Lenz"}).errors == misspelt
    misspelt = {"client": ["Unknown field. Did you mean client_id?"]}
    assert api.post("/time-entries", {"client": client, "duration_minutes": 90}).errors == misspelt
    answer = api.post("/clients", {"nam": "Optik"})
    assert answer.errors == {"nam": ["Unknown field. Did you mean name?"], "name": ["Is required."]}
    assert answer.json["message"].endswith("Did you mean name? (and 1 more error)")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the body is empty"),
        (b" \n", "the body is empty"),
        (b'\xef\xbb\xbf{"name": "x"}', "the body starts with a byte order mark. Remove the bytes EF BB BF"),
        ('{"name": "x"}'.encode("utf-16"), "the body is not UTF-8"),
        (b"{'name': 'x'}", f"the body cannot be parsed at {AT} (expecting property name enclosed in double quotes)"),
        (b'{"name": "x", "name": "y"}', 'the field "name" appears twice'),
        (b"[]", 'the body must be an object, like {"name": "..."}'),
    ],
)
def test_a_body_that_is_no_json_says_what_it_is(api, body, reason):
    answer = api.call("POST", "/tags", raw=body)
    assert (answer.status, answer.code) == (400, "malformed_json")
    assert answer.json["message"] == f"Send valid JSON: {reason}."
