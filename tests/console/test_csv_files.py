"""CSV files: numbers stay numbers, and no spreadsheet runs a text."""

import csv
import io
from decimal import Decimal

import pytest

from retainer.web.csv_files import csv_text
from retainer.web.pages import csv_response


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "  =1",
        "\u00a0=1",
        "\uff1d1+1",
        "\uff0b1",
        "\uff0d1",
        "\uff20A1",
        '=A("x")',
        "\u200b=1",
        "\x85@A1",
        "\u2028+1",
    ],
)
def test_a_text_that_begins_like_a_formula_gets_an_apostrophe(text):
    (row,) = csv.reader(io.StringIO(csv_text([text], [])[1:], newline=""))
    assert row == [f"'{text}"]


def test_numbers_are_not_quoted_and_text_is():
    rows = [["Optik, Weiß", -5, Decimal("-1250.50"), None, 'a "b"\nc']]
    assert csv_text(["Client", "Days", "Amount", "", ""], rows) == (
        '\ufeff"Client","Days","Amount","",""\r\n"Optik, Weiß",-5,-1250.50,"","a ""b""\nc"\r\n'
    )


def test_a_file_is_a_download_that_no_browser_renders():
    response = csv_response("revenue", ["Client"], [["Optik"]], ("cache-control", "no-store"))
    headers = dict(response.headers)
    assert headers["content-type"] == "text/csv; charset=utf-8"
    assert headers["content-disposition"] == 'attachment; filename="revenue.csv"'
    assert headers["cache-control"] == "no-store"
    assert headers["content-security-policy"].startswith("default-src 'none'")
