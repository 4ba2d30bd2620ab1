"""Tables: each file is read as its program meant it, and what only a person can know is asked."""

from datetime import date, datetime, time
from decimal import Decimal

import pytest

from retainer.errors import Refusal
from retainer.exchange import tables
from retainer.exchange.columns import ColumnMapping, ImportSource, find_table, place_columns, require_rows

CLIENT = ImportSource("csv", "a CSV file", {"client": ("client",), "notes": ("notes",)}, ("client",))


def table(text, encoding="utf-8"):
    return find_table(text.encode(encoding), CLIENT, ColumnMapping())


def error_of(function, *arguments):
    with pytest.raises(Refusal) as refused:
        function(*arguments)
    return refused.value.members["errors"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_file_is_read_in_its_encoding_and_with_its_delimiter(encoding, delimiter):
    rows = [["Client", "Notes"], ["Müller", "größer"], ["Ärzte", 'a\\"b']]
    text = "\r\n".join(delimiter.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
    found = table(text, encoding)
    assert [found.headings, *(row.cells for row in found.rows)] == rows


def test_rows_have_the_line_on_which_they_begin_and_as_many_cells_as_headings():
    found = table('Title,\n\nClient,Notes\nA,"two\nlines"\nB\n\n,\nC,x,,\nD,x,y\n')
    assert [(row.line, row.cells, row.is_too_long) for row in found.rows] == [
        (4, ["A", "two\nlines"], False),
        (6, ["B", ""], False),
        (9, ["C", "x"], False),
        (10, ["D", "x", "y"][:2], True),
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Is empty."),
        (b"Client\n\0\n", "Line 2 has a zero byte, as UTF-16 without its mark does."),
        ("Client\nM\u00fcller".encode("utf-16") + b"x", "Line 2 has a byte that is no character."),
        ("Client\nM\u00fcller\nÄrzte\nGröße\n".encode() + b"\xfc\n", "Line 5 has a byte that is no character."),
        (b"Client\nM\x81ller\n", "Line 2 has a byte that is no character."),
        (b"PK\x03\x04...", "Is a workbook or another ZIP."),
        (b"\xd0\xcf\x11\xe0...", "Is a workbook of Excel."),
        (b"%PDF-1.7", "Is a PDF."),
        (b"Name,Hours\nA,1\n", "Has no column for client. Its headings seem to be: Name, Hours."),
        (b'Client,Notes\nA,1\n"B,2\nC,3\n', "Line 3 cannot be divided into cells"),
        (b'Client,Notes\n"B,2\n"C",3\n', "Line 2 cannot be divided into cells"),
        ("Client\nA\na{}".format("\u0301\ufeff" * 50_000).encode(), "Line 3 has more than 30 accents on a letter."),
        ("Client\nA\na{}".format("\u0301\uff9e" * 50_000).encode(), "Line 3 has more than 30 accents on a letter."),
        (b"Client\nA\n" + b"\n" * 2_000_001, "Has more than 2,000,000 lines."),
        (b",".join(b"c%d" % number for number in range(501)), "Has more than 500 columns."),
        (b"Client,Notes\nA," + b"x" * (1 << 18), "Line 2 cannot be divided into cells"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line_and_what_to_do(content, reason):
    (message,) = error_of(find_table, content, CLIENT, ColumnMapping())["file"]
    assert message.startswith(reason)
    assert len(message.split(". ")) > 1, "what to do"


def test_a_file_with_headings_alone_is_refused():
    assert "no rows" in error_of(lambda: require_rows(table("Client,Notes\n")))["file"][0]


def test_of_two_equal_headings_each_can_be_chosen():
    found = table("Client,Phone,Phone\nA,1,2\n")
    assert found.headings == ["Client", "Phone", "Phone (2)"]
    mapping = ColumnMapping(columns={"notes": "Phone (2)"})
    assert place_columns(CLIENT, mapping, found.headings) == {"client": 0, "notes": 2}


@pytest.mark.parametrize(
    ("values", "mark"),
    [
        (["20,0", "1,5"], ","),
        (["2.000,0", "1.500"], ","),
        (["1,500.25"], "."),
        (["0,125"], ","),
        (["1.500", "0.25"], "."),
        (["1.234.567"], ","),
        (["", "20"], "."),
    ],
)
def test_the_whole_column_decides_its_decimal_mark(values, mark):
    assert tables.decimal_mark(values, "duration") == mark


def test_a_column_that_does_not_decide_is_asked_about():
    assert list(error_of(tables.decimal_mark, ["1.500", "2.000"], "duration")) == ["decimal_mark"]
    assert list(error_of(tables.decimal_mark, ["1.5", "1,5"], "duration")) == ["duration"]


@pytest.mark.parametrize(
    ("text", "mark", "number"),
    [
        ("2.000,0", ",", "2000.0"),
        ("$13.50 ", ".", "13.50"),
        ("$-142.85", ".", "-142.85"),
        ("1'234.50", ".", "1234.50"),
        ("1 234,50 €", ",", "1234.50"),
    ],
)
def test_numbers_are_exact_whatever_surrounds_them(text, mark, number):
    assert tables.read_decimal(text, mark) == Decimal(number)
    with pytest.raises(tables.BadCell):
        tables.read_decimal("none", mark)


def test_the_whole_file_decides_the_order_of_its_days():
    assert tables.day_order(["03/04/2024", "13/04/2024"], "date") == "day_first"
    assert tables.day_order(["03/04/2024", "04/13/2024"], "date") == "month_first"
    assert tables.day_order(["03.04.2024"], "date") == "day_first"
    assert tables.day_order(["2024-03-04"], "date") == "day_first"
    assert list(error_of(tables.day_order, ["03/04/2024"], "date")) == ["day_order"]
    assert list(error_of(tables.day_order, ["13/04/2024", "04/13/2024"], "date")) == ["date"]


def test_days_times_moments_and_durations_have_many_forms():
    assert tables.read_day("03/04/2024", "month_first") == date(2024, 3, 4)
    assert tables.read_day("3.4.2024", "day_first") == date(2024, 4, 3)
    assert tables.read_time("10:23 AM") == time(10, 23)
    assert tables.read_time("12:05:01 am") == time(0, 5, 1)
    assert tables.read_time("11:23:01 PM") == time(23, 23, 1)
    assert tables.read_moment("03/04/2024 10:23", "day_first") == datetime(2024, 4, 3, 10, 23)  # noqa: DTZ001
    assert tables.read_seconds("1:00:01", ".") == 3601
    assert tables.read_seconds("0,25", ",") == 900
    for read, text in ((tables.read_day, "31/31/2024"), (tables.read_moment, "soon")):
        with pytest.raises(tables.BadCell):
            read(text, "day_first")
    for text in ("25:00", "13:00 PM", "noon"):
        with pytest.raises(tables.BadCell):
            tables.read_time(text)


def test_an_unknown_word_for_yes_is_asked_about_and_not_taken_as_no():
    assert tables.read_truth("Ja", "billable", tables.YES, tables.NO)
    assert not tables.read_truth("", "billable", tables.YES, tables.NO)
    assert list(error_of(tables.read_truth, "Joo", "billable", tables.YES, tables.NO)) == ["billable"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h 5m", 3900), ("15m", 900), ("2 Std. 30 Min.", 9000), ("1.5 h", 5400), ("1h", 3600), ("1:05", 3900)],
)
def test_a_duration_with_units_is_never_read_as_other_hours(text, seconds):
    assert tables.read_seconds(text, ".") == seconds


@pytest.mark.parametrize("text", ["1e5", "1:99", "1 5", "1-2", "5 apples", "0x10", "2d", "\u0661", "1h5", "9" * 30])
def test_what_is_no_duration_is_refused_instead_of_guessed(text):
    with pytest.raises(tables.BadCell):
        tables.read_seconds(text, ".")


@pytest.mark.parametrize("text", ["EUR 1,234.50", "-€1,234.50", "€ -1,234.50", "1 234.50 $", "1'234.50 CHF"])
def test_a_number_may_have_a_currency_and_spaces_before_thousands(text):
    assert abs(tables.read_decimal(text, ".")) == Decimal("1234.50")


def test_a_number_of_many_figures_is_refused_before_anything_is_computed():
    for text in ("9" * 1000, "1 e5", "12 34", "1 2345"):
        with pytest.raises(tables.BadCell):
            tables.read_decimal(text, ".")


@pytest.mark.parametrize("text", ["0001-01-01T00:00", "9999-12-31T23:59-14:00", "31.02.2026 10:00", "2026-02-111 9:00"])
def test_a_moment_that_no_calendar_has_is_refused(text):
    with pytest.raises(tables.BadCell):
        tables.read_moment(text, "day_first")
