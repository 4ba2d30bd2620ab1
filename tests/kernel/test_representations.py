"""Which form of a record `Accept` chooses."""

import pytest

from retainer.billing.files import ISSUED_AS, PRINTED_AS
from retainer.kernel.representations import negotiate

CASES = [
    ("", None),
    ("*/*", None),
    ("application/*", None),
    ("application/json", None),
    ("text/html", None),
    ("application/pdf", "pdf"),
    ("APPLICATION/PDF", "pdf"),
    ("application/pdf, */*;q=0.1", "pdf"),
    ("application/pdf;q=0", None),
    ("application/pdf;q=0.5, application/json", None),
    ("application/xml;q=0.9, application/pdf;q=0.8", "xml"),
    ("application/*, application/json;q=0.5", "pdf"),
    ("*/*;q=0.9, application/pdf;q=0.5", None),
    ("application/*;q=0.9, application/json;q=0, application/pdf;q=0.1", "xml"),
    ("application/pdf;version=1.7", "pdf"),
    ("application/pdf;q=2", None),
    ("application/pdf;q=x", None),
    ("application/pdf;q=nan", None),
    (";;", None),
]


@pytest.mark.parametrize(("accept", "suffix"), CASES)
def test_accept_chooses_a_form(accept, suffix):
    chosen = negotiate(ISSUED_AS, (), accept)
    assert (chosen and chosen.suffix) == suffix


def test_a_form_that_is_not_offered_is_not_chosen():
    assert negotiate(PRINTED_AS, (), "application/xml") is None
    assert negotiate((), (), "application/pdf") is None


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/pdf", 406),
        ("APPLICATION/PDF;q=0.1", 406),
        ("application/pdf, application/xml", 406),
        ("text/html, application/xml", 406),
        ("application/pdf;q=0", 200),
        ("application/pdf, */*;q=0.1", 200),
        ("application/*", 200),
        ("text/html", 200),
        ("application/pdf;q=x", 200),
        ("", 200),
    ],
)
def test_a_form_that_only_other_operations_offer_is_not_acceptable(api, accept, status):
    answer = api.get("/clients", headers={"Accept": accept})
    assert answer.status == status
    if status == 406:
        assert answer.code == "not_acceptable"
        assert "Send Accept: application/json." in answer.json["message"]


def test_a_quote_has_a_pdf_and_no_einvoice(api):
    path = f"/quotes/{api.make('/quotes')['id']}"
    refused = api.get(path, headers={"Accept": "application/xml"})
    assert refused.json["message"] == (
        "There is no application/xml at this path. Send Accept: application/json or application/pdf."
    )
