"""Files of time: each program's file becomes the same entries, with nothing lost and nothing guessed."""

from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from retainer.exchange.columns import ColumnMapping, read_mapping
from retainer.exchange.plans import MAX_SUMS
from retainer.exchange.sources import SOURCES
from retainer.exchange.time_files import Booking, decode, plan
from tests.exchange import files
from tests.exchange.test_tables import error_of

BERLIN = ZoneInfo("Europe/Berlin")


def planned(source, text, zone=BERLIN, **mapping):
    return plan(text.encode(), SOURCES[source], ColumnMapping(**mapping), zone)


def bookings(source, text, zone=BERLIN, **mapping):
    items = map(decode, planned(source, text, zone, **mapping).content.splitlines())
    return [item for item in items if isinstance(item, Booking)]


def names(booking):
    return [(each.kind, each.name) for each in booking.named()]


def test_harvest_has_decimal_commas_names_of_people_and_what_is_invoiced():
    first, second, third, internal, empty = bookings("harvest", files.HARVEST)
    assert names(first) == [("person", "Ana Ott"), ("client", "Nordwind"), ("project", "Shop"), ("task", "Design")]
    assert (first.parts[0].date, first.parts[0].minutes, first.parts[0].started_at) == ("2026-03-02", 1200, None)
    assert (first.billable, first.is_settled, first.hourly_rate) == (True, True, Decimal("100.0"))
    assert (second.is_settled, internal.billable, internal.hourly_rate) == (False, False, None)
    assert names(internal) == [("person", "Ben Lenz"), ("project", "Internal")]
    assert (empty.line, empty.parts, empty.reason) == (6, [], "Has no time: a time entry has at least a minute.")
    assert second.parts[0].external_id != third.parts[0].external_id, "two equal bookings are two"


def test_toggl_has_local_times_seconds_and_an_amount_from_which_the_rate_follows():
    first, _, reading = bookings("toggl", files.TOGGL)
    (part,) = first.parts
    assert (part.started_at, part.seconds, part.minutes) == ("2026-03-02T09:23:52.000000Z", 3601, 60)
    assert (first.hourly_rate, first.currency, first.person.detail) == (Decimal("79.98"), "EUR", "ana@studio.example")
    assert names(reading) == [("person", "Ana Ott"), ("project", "No project")]
    free = "\n".join(line.rpartition(",")[0] for line in files.TOGGL.splitlines())
    assert bookings("toggl", free)[0].hourly_rate is None


def test_clockify_has_days_by_account_half_days_and_backslashes():
    (booking,) = bookings("clockify", files.CLOCKIFY)
    assert (booking.parts[0].date, booking.parts[0].started_at) == ("2026-03-14", "2026-03-14T09:23:00.000000Z")
    assert (booking.description, booking.is_settled, booking.task.name) == ("C:\\new", True, "Design")
    assert (booking.hourly_rate, booking.currency) == (Decimal("80.00"), "USD")
    ambiguous = files.CLOCKIFY.replace("03/14", "03/04")
    assert list(error_of(bookings, "clockify", ambiguous)) == ["day_order"]
    (asked,) = bookings("clockify", ambiguous, day_order="day_first")
    assert asked.parts[0].date == "2026-04-03"


def test_kimai_is_translated_and_ends_after_midnight():
    (booking,) = bookings("kimai", files.KIMAI)
    assert (booking.parts[0].date, booking.parts[0].minutes, booking.billable) == ("2026-04-03", 60, True)
    assert (booking.client.name, booking.client.detail, booking.hourly_rate) == ("Müller", "EUR", Decimal("80.00"))
    english = files.KIMAI.split("\n", 1)[1]
    heading = (
        "Date;From;To;Duration;Currency;Price;Internal price;Hourly price;Fixed price;Name;User;E-mail;Staff number;"
    )
    heading += (
        "Customer;Project;Activity;Description;Billable;Tags;Type;category;Account;Project number;VAT-ID;Order number"
    )
    (translated,) = bookings("kimai", f"{heading}\n{english}")
    assert translated.parts == booking.parts, "the same row in another language is the same entry"


def test_solidtime_has_instants_and_a_csv_of_ones_own_a_mapping():
    (booking,) = bookings("solidtime", files.SOLIDTIME)
    assert (booking.parts[0].started_at, booking.parts[0].minutes) == ("2026-03-02T09:23:00.000000Z", 60)
    assert "file" in error_of(bookings, "csv", files.OWN.replace("minutes", "took"))
    (own,) = bookings("csv", files.OWN, columns={"project": "Job"})
    assert (own.parts[0].minutes, own.parts[0].external_id, own.project.name) == (90, "csv:17", "Shop")
    assert error_of(read_mapping, b'{"colums": {}}') == {"mapping": ["Object contains unknown field `colums`."]}


def test_a_csv_of_ones_own_may_have_german_headings():
    text = "Datum;Kunde;Projekt;Mitarbeiter;Stunden;Notiz;Abgerechnet\n03.11.2026;Optik;Shop;Ana Ott;3,5;Entwurf;ja\n"
    (booking,) = bookings("csv", text)
    assert names(booking) == [("person", "Ana Ott"), ("client", "Optik"), ("project", "Shop")]
    assert (booking.parts[0].date, booking.parts[0].minutes, booking.is_settled) == ("2026-11-03", 210, True)


def test_a_skipped_hour_is_listed_and_of_one_that_comes_twice_the_first_counts():
    rows = ("2026-03-29 02:30,2026-03-29 03:30", "2026-10-25 02:30,2026-10-25 04:00")
    text = "start,end,project\n" + "".join(f"{row},Shop\n" for row in rows)
    skipped, twice = bookings("csv", text)
    assert skipped.reason == "2026-03-29 02:30 does not exist in Europe/Berlin: clocks were put forward."
    assert (twice.parts[0].started_at, twice.parts[0].minutes) == ("2026-10-25T00:30:00.000000Z", 150)


def test_a_row_longer_than_a_day_is_divided_at_midnight_or_listed():
    text = "start,end,project,person\n2026-03-02 22:00,2026-03-04 01:00,Shop,Ana\n"
    (booking,) = bookings("csv", text)
    assert [(part.date, part.minutes) for part in booking.parts] == [
        ("2026-03-02", 120),
        ("2026-03-03", 1440),
        ("2026-03-04", 60),
    ]
    (listed,) = bookings("csv", "date,hours,project\n2026-03-02,25,Shop\n")
    assert listed.reason == "Is longer than a day, and has no start. Divide it into days."


def test_files_that_overlap_and_other_zones_give_the_same_ids():
    whole = bookings("harvest", files.HARVEST)
    lines = files.HARVEST.splitlines(keepends=True)
    part = bookings("harvest", lines[0] + "".join(lines[3:]), ZoneInfo("America/New_York"))
    assert [each.parts[0].external_id for each in part[:1]] == [whole[1].parts[0].external_id]
    assert part[1].parts == whole[3].parts


def test_a_file_with_more_sums_than_a_page_can_show_is_refused():
    rows = (f"2026-01-01,Nordwind,1:00,Person {number}" for number in range(MAX_SUMS + 1))
    (message,) = error_of(planned, "csv", "\n".join(["date,client,duration,person", *rows]))["file"]
    assert message == "Has more than 5,000 different people or clients and months. Divide it, and import the parts."


def test_a_row_with_a_name_that_no_record_can_have_is_left_out_of_the_sums():
    text = f"date,client,duration,person\n2026-01-01,Nordwind,1:00,{'x' * 256}\n2026-01-01,Nordwind,1:00,Ana"
    (long, short) = bookings("csv", text)
    assert (long.reason, short.reason) == ("Has a name of more than 255 characters.", None)
    assert [each["person"] for each in planned("csv", text).sums] == ["Ana"]


def test_the_sums_say_what_rounding_to_minutes_changes():
    (found,) = planned("toggl", files.TOGGL).sums
    assert found == {"person": "Ana Ott", "month": "2026-03", "seconds_in_file": 3601 + 1800, "minutes": 60 + 30}


@pytest.mark.parametrize(
    ("cell", "reason"), [("Euros", "“Euros” is not a currency. Write its code, like EUR."), ("EUR", None)]
)
def test_what_a_cell_cannot_mean_is_listed_with_its_line(cell, reason):
    text = f"date,hours,project,currency\n2026-03-02,1,Shop,{cell}\n2026-03-03,1,Shop,EUR\n"
    first, second = bookings("csv", text)
    assert (first.line, first.reason, second.reason) == (2, reason, None)


def test_a_row_that_nobody_can_compute_is_refused_alone():
    text = "start,duration,client\n2026-03-04T10:00,%s,A\n0001-01-01T00:00,1,A\n2026-03-04T10:00,1,A\n" % ("9" * 18)
    too_long, too_early, usual = bookings("csv", text)
    assert ("longer than a month" in too_long.reason, "1900" in too_early.reason, usual.reason) == (True, True, None)


def test_minutes_may_have_a_decimal_comma():
    (booking,) = bookings("csv", 'date,minutes,client\n2026-03-04,"1,5",A\n')
    assert booking.parts[0].seconds == 90
