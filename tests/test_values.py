import time
import tracemalloc

import pytest
from email_validator import validate_email
from hypothesis import given, settings
from hypothesis import strategies as st

from retainer.values.common import read_payment_url
from retainer.values.exact import DIGITS
from retainer.values.kinds import (
    PLAIN_EMAIL,
    one_of,
    read_day,
    read_email,
    read_instant,
    read_pattern,
    read_site_url,
    read_url,
)
from tests.length import length

PERSON = st.from_regex(r"[A-Za-z0-9_+]{1,9}([.-][A-Za-z0-9_+]{1,9}){0,4}", fullmatch=True)
HOST = st.from_regex(r"([a-z0-9]{1,20}(-[a-z0-9]{1,20}){0,2}\.){1,2}[a-z]{2,20}", fullmatch=True)


@settings(max_examples=length(500), deadline=None)
@given(st.builds("{}@{}".format, PERSON, HOST))
def test_a_plain_address_is_one_that_the_library_takes_as_it_is(address):
    assert PLAIN_EMAIL.fullmatch(address)
    found = validate_email(address, check_deliverability=False, globally_deliverable=False)
    assert found.normalized == address == read_email(address)


@pytest.mark.parametrize("address", ["", "a", "a@", "@b.example", "a@b@c.example", "a..b@c.example", "a@-b.example", 7])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError):
        read_email(address)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_email, "a" * 900_000),
        (read_email, "a@" + "\u200b" * 300_000),
        (one_of(lambda: DIGITS), "\u0130" * 450_000),
        (read_url, "http://" + "\u00fc." * 300_000),
    ],
)
def test_a_text_of_a_mebibyte_is_refused_at_once(read, text):
    began = time.process_time()
    with pytest.raises(ValueError):
        read(text)
    assert time.process_time() - began < 0.2


@pytest.mark.parametrize("read", [read_url, read_site_url, read_payment_url])
def test_an_address_that_is_too_long_leaves_nothing_in_memory(read):
    tracemalloc.start()
    try:
        for number in range(8):
            with pytest.raises(ValueError):
                read(f"https://{read.__name__}{number}/" + "a" * 500_000)
        assert tracemalloc.get_traced_memory()[0] < 500_000
    finally:
        tracemalloc.stop()


def test_an_address_is_normalised():
    assert read_email("Jörg@BÜCHER.example") == "Jörg@bücher.example"
    assert read_email("Ana@AGENCY.example") == "Ana@agency.example"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-29T01:30:00+02:00", "2026-03-28T23:30:00.000000Z"),
        ("2026-03-29t01:30:00.1234567z", "2026-03-29T01:30:00.123456Z"),
        ("2026-03-29T01:30:00-00:00", "2026-03-29T01:30:00.000000Z"),
    ],
)
def test_a_moment_is_kept_in_utc(text, moment):
    assert read_instant(text) == moment


@pytest.mark.parametrize(
    "text",
    ["2026-03-29T01:30:00", "2026-02-30T00:00:00Z", "0001-01-01T00:00:00+14:00", "2026-03-29", "٢٠٢٦-03-29T01:30:00Z"],
)
def test_what_is_no_moment_is_refused(text):
    with pytest.raises(ValueError):
        read_instant(text)


@pytest.mark.parametrize("text", ["2026-02-29", "2026-1-01", "20260101", "2026-01-01T00:00:00Z", "٢٠٢٦-01-01"])
def test_what_is_no_day_is_refused(text):
    with pytest.raises(ValueError):
        read_day(text)


@pytest.mark.parametrize("text", ["", "X", "{YYYY}", "{0}{0}", "{00", "x" * 46 + "{0000}", 7])
def test_a_pattern_of_numbers_has_one_place_for_the_number(text):
    with pytest.raises(ValueError):
        read_pattern(text)
    assert read_pattern("Q-{YYYY}-{0000}") == "Q-{YYYY}-{0000}"
