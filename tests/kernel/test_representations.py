"""Which form of a record `Accept` chooses."""

import pytest

from retainer.billing.files import ISSUED_AS, PRINTED_AS
from retainer.kernel.representations import choose

CASES = [
    (None, None),
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
    ("application/pdf;q=x", None),
    ("application/pdf;q=nan", None),
    (";;", None),
    ("application/pdf," + " " * 300, None),
]


@pytest.mark.parametrize(("accept", "suffix"), CASES)
def test_accept_chooses_a_form(accept, suffix):
    chosen = choose(ISSUED_AS, accept)
    assert (chosen and chosen.suffix) == suffix


def test_a_form_that_is_not_offered_is_json():
    assert choose(PRINTED_AS, "application/xml") is None
    assert choose((), "application/pdf") is None
