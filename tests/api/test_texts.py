"""Texts: one form for equal texts, whichever way they come, and no invisible characters in what is compared."""

import sys
import unicodedata
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints
from urllib.parse import quote, urlencode

import msgspec
import pytest
from tests.console.visitor import admin_of
from tests.contract.cases import BODIES, CREATES, bare, body_schema, is_free_text, kinds, schema_fields, with_value
from tests.databases import each_database
from tests.factories import ApiClient
from tests.length import IS_FULL

from retainer.errors import FieldErrors
from retainer.identity.accounts import AccountSettings
from retainer.identity.keys.keys import KeyDetails
from retainer.identity.people.users import UserDetails
from retainer.values.reading import INVALID, unwrapped, writable_fields
from retainer.values.texts import CODE, MAX_MARKS, TOO_MANY_MARKS, has_many_marks, is_blank

COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "Café Zoë 각") for form in ("NFC", "NFD"))
CODES = {
    *("code", "external_id", "number", "purchase_order", "reference", "registration_number", "slug", "vat_number"),
    *(f"{series}_number_pattern" for series in ("client", "credit_note", "invoice", "quote")),
}
"""The fields that hold numbers, codes, patterns and external ids."""


def test_a_decomposed_text_is_the_composed_one_in_every_part_of_a_request(api: ApiClient):
    made = api.put(f"/clients/external:{quote(DECOMPOSED)}", {"name": f" {DECOMPOSED} "})
    assert (made.status, made.data["name"], made.data["external_id"]) == (201, COMPOSED, COMPOSED)
    for path, field in ((COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)):
        again = api.put(f"/clients/external:{quote(path)}", {"name": COMPOSED, "external_id": field})
        assert (again.status, again.data) == (200, made.data)
    for name in ("external_id", "name", "q"):
        for text in (DECOMPOSED, COMPOSED):
            assert [row["id"] for row in api.get("/clients", {name: text}).data] == [made.data["id"]], (name, text)
    assert api.create("/tags", name=COMPOSED).status == 201
    assert set(api.create("/tags", name=DECOMPOSED).errors) == {"name"}
    assert set(api.create("/clients", name="B", external_id=DECOMPOSED).errors) == {"external_id"}


def test_a_decomposed_text_is_the_composed_one_in_forms_and_searches_of_the_console(api: ApiClient):
    client_id = api.make("/clients", name=COMPOSED)["id"]
    visitor = admin_of(api)
    for path in ("/console/search", "/console/records/clients"):
        links = visitor.get(f"{path}?{urlencode({'q': DECOMPOSED})}").links
        assert any(link.startswith(f"/console/records/clients/{client_id}") for link in links), path
    for typed in (DECOMPOSED, COMPOSED):
        visitor.submit("/console/settings", legal_name=typed)
        assert api.sql("SELECT legal_name FROM accounts WHERE id = $1", api.account_id) == [(COMPOSED,)]
    (key,) = api.sql("SELECT id FROM api_keys WHERE account_id = $1", api.account_id)
    visitor.submit(f"/console/keys/{key[0]}/edit", name=DECOMPOSED)
    confirmed = visitor.post(f"/console/keys/{key[0]}/revoke", {"confirmation": DECOMPOSED})
    assert confirmed.status == 303, confirmed.text


@pytest.mark.parametrize(
    ("field", "text", "found"),
    [
        ("name", "a\nb", "character 2 is a line break (U+000A)"),
        ("name", "a\x85b", "character 2 is U+0085"),
        ("number", "K\u200b3", "character 2 is zero width space (U+200B)"),
        ("vat_number", "DE\u202d1", "character 3 is left-to-right override (U+202D)"),
        ("external_id", "a\u2028b", "character 2 is line separator (U+2028)"),
        ("name", "a\u2028b", "character 2 is line separator (U+2028)"),
        ("name", "a\u2029b", "character 2 is paragraph separator (U+2029)"),
        ("name", "a\ufffe", "character 2 is U+FFFE"),
        ("name", "a\ufdd0b", "character 2 is U+FDD0"),
        ("number", "a\U0001ffffb", "character 2 is U+1FFFF"),
    ],
)
def test_a_character_that_nobody_sees_is_refused_and_named(api: ApiClient, field: str, text: str, found: str):
    for answer in (api.create("/clients", **{field: text}), api.get("/clients", {field: text})):
        (message,) = answer.errors[field]
        assert found in message


INVISIBLE = "\u200b\u2060\ufeff\u3164\u2800\u00ad\u200e\u200d\u034f\ufe0f\u180e\U000e0041\u115f\u2064"
"""One character of each kind that prints nothing by itself."""


def texts_of(schema: dict[str, Any], *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the texts that a body may have, those of its parts included."""
    for name, field in schema_fields(schema).items():
        item = bare(field["items"]) if "array" in kinds(field) else field
        here = (*path, name, "0") if "array" in kinds(field) else (*path, name)
        if "properties" in item:
            yield from texts_of(item, *here)
        elif "string" in kinds(item) and is_free_text(item):
            yield here


TEXTS = {
    f"{operation} {'.'.join(path)}": (operation, path)
    for operation in CREATES
    if operation.path != "/batch"
    for path in texts_of(body_schema(operation))
}


@pytest.mark.parametrize("text", TEXTS)
def test_no_text_of_a_new_record_prints_nothing(api: ApiClient, text: str):
    """A required one is refused; another one is null. Within a text, such characters join letters and emoji."""
    operation, path = TEXTS[text]
    for nothing in (f" {INVISIBLE} ", *(INVISIBLE if IS_FULL else ())):
        at = api.at(operation.path)
        answer = api.post(at, with_value(operation, api.recipe(at), path, nothing))
        if answer.status != 422:
            shown = answer.data
            for part in path:
                shown = shown[int(part)] if part == "0" else shown[part]
            assert shown is None or not is_blank(shown), answer  # null, or its default


REQUIRED = [
    (operation.path, path[0])
    for operation, path in TEXTS.values()
    if path[0] in body_schema(operation).get("required", ()) and len(path) == 1 and path[0] != "content"
]
"""The content of a file is no text of people: it is Base64."""


@pytest.mark.parametrize(("path", "field"), REQUIRED)
def test_a_required_text_that_prints_nothing_is_refused_with_a_sentence(api: ApiClient, path: str, field: str):
    at = api.at(path)
    recipe = api.recipe(at)
    for nothing in (*INVISIBLE, INVISIBLE):
        (message,) = api.post(at, recipe | {field: nothing}).errors[field]
        assert message.endswith("characters; this has none that prints.")
    for text in ("نمی\u200cشود", "👩\u200d💻"):
        assert api.post(at, recipe | {field: text}).data[field] == text


def test_a_name_cannot_be_changed_to_one_that_prints_nothing(api: ApiClient):
    client = api.make("/clients")["id"]
    assert set(api.patch(f"/clients/{client}", {"name": INVISIBLE}).errors) == {"name"}


def test_names_that_commands_and_the_console_write_have_something_that_prints(api: ApiClient):
    for model in (AccountSettings, KeyDetails, UserDetails):
        errors = FieldErrors()
        assert writable_fields(model)["name"].read(INVISIBLE, "name", errors) is INVALID, model
        assert errors["name"][0].endswith("characters; this has none that prints.")


def test_an_optional_text_of_invisible_characters_is_null(api: ApiClient):
    made = api.make("/clients", name="A", city=INVISIBLE, notes="\u200b\n\u2060", number="\u00a0")
    assert (made["city"], made["notes"], made["number"]) == (None, None, "C-0001")
    line = {"description": "\u200b", "unit_price": "1"}
    refused = api.create("/invoices", lines=[line])
    assert refused.errors == {"lines.0.description": ["Is required, unless the line bills work."]}


def test_an_external_id_in_a_path_follows_the_rules_of_the_field(api: ApiClient):
    for text in ("a\tb", "a\u200bb", "a\x00b"):
        assert set(api.put(f"/clients/external:{quote(text)}", {"name": "A"}).errors) == {"external_id"}, text


def test_notes_keep_their_lines_and_names_their_joined_emoji(api: ApiClient):
    notes, name = "First\n\tSecond\x0b", "Team 👩\u200d💻"
    made = api.make("/clients", name=name, notes=notes)
    assert (made["name"], made["notes"]) == (name, notes.strip())
    assert [row["id"] for row in api.get("/clients", {"q": "first\n\tsec"}).data] == [made["id"]]


def fields_of(model: type[msgspec.Struct]) -> Iterator[tuple[str, Any]]:
    """Yield the declared kinds of a body's fields, those of its parts included."""
    hints = get_type_hints(model, include_extras=True)
    for name, field in (writable_fields(model) | writable_fields(model, "Update")).items():
        kind = hints[field.name]
        yield name, kind
        for part in parts_of(kind):
            if isinstance(part, type) and issubclass(part, msgspec.Struct):
                yield from fields_of(part)


def parts_of(kind: Any) -> Iterator[Any]:
    """Yield a declared kind and all that it consists of."""
    yield kind
    bare, _ = unwrapped(kind)
    for part in get_args(bare):
        yield from parts_of(part)


def test_the_fields_that_are_compared_by_their_letters_are_declared_as_codes():
    models = {operation.body for operation in BODIES} | {AccountSettings}
    codes = {
        name
        for model in models
        for name, kind in fields_of(model)
        for part in parts_of(kind)
        if CODE in unwrapped(part)[1]
    }
    assert codes == CODES


def test_a_long_run_of_combining_marks_is_refused_at_once(api: ApiClient):
    runs = ("\u0301\u0323" * 250_000, "\u0f73" * 340_000, "\u0301\uff9e" * 170_000, "\u0301\u200b" * 40, "\u0301" * 31)
    for text in map("é".__add__, runs):
        raw = f'{{"name": "A", "notes": "{text}"}}'.encode()
        assert api.call("POST", "/clients", raw=raw).errors["notes"] == [TOO_MANY_MARKS]
    assert api.create("/clients", name="A", notes="a" + "\u0301" * 30).status == 201


def test_every_character_that_a_form_of_a_text_begins_a_mark_with_counts_as_one():
    begin = [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if any(unicodedata.combining(unicodedata.normalize(form, character)[0]) for form in ("NFD", "NFKD"))
    ]
    assert len(begin) > 900
    assert [f"U+{ord(each):04X}" for each in begin if not has_many_marks(each * (MAX_MARKS + 1))] == []


@each_database  # each makes one text of a page in its own way
def test_a_list_shows_every_text_as_it_was_sent(api: ApiClient):
    notes = ["first\nsecond\r\nthird", "a,b],[c", '"\\n\\', "a\u2028b\u2029c\x1fd"]
    for text in notes:
        api.make("/clients", notes=text)
    for query in ({}, {"per_page": 2, "page": 2}):
        listed = api.get("/clients", {"sort": "id", **query}).data
        assert [client["notes"] for client in listed] == notes[-len(listed) :]
