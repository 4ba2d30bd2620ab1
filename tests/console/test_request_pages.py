"""The pages of requests: filters, the reason of a refusal, and figures that agree on every page."""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
import time_machine

from retainer.console.charts import hourly_chart
from retainer.identity.keys.keys import KeyDetails, create_key
from retainer.traffic.answered import Reason
from retainer.traffic.counts import CountedHours
from retainer.values.exact import as_instant
from tests.databases import slow_on_each
from tests.traffic.common import answered, asked, write

pytestmark = slow_on_each
TOTAL = r"([\d,]+) requests, [\d,]+ client errors?, [\d,]+ server errors?\."
FORBIDDEN = Reason("missing_scope", ["clients:write"])


def now():
    return datetime.now(UTC)


def link_to_a_request(page):
    return next(link for link in page.links if re.match(r"/console/requests/\d", link))


def number(text, pattern):
    """The number that a page says before a word."""
    return int(re.search(pattern, text)[1].replace(",", ""))


@pytest.fixture
def reader(api):
    """A key that can read clients only."""
    with api.operating() as tx:
        return create_key(tx, KeyDetails("Reader", api.admin_id, ["clients:read"]))[0]


def test_the_hour_that_the_end_of_summer_time_repeats_has_the_requests_of_both(api):
    times = [as_instant(datetime(2026, 10, 25, hour, 30, tzinfo=UTC)) for hour in (0, 1, 1, 2)]
    write(api, *(answered(api, time=each) for each in times))
    chart = asked(api, hourly_chart, None, CountedHours(times[0], times[-1]))
    assert {hour: counts.requests for hour, counts in chart.rows.items()} == {"25 Oct, 02:00": 3, "25 Oct, 03:00": 1}
    assert chart.total.requests == 4


def test_the_log_is_filtered_by_days_writes_and_code(api, visitor):
    today = now().date()
    days = [as_instant(datetime(2026, 3, day, 12, tzinfo=UTC)) for day in (9, 10, 11)]
    write(
        api,
        answered(api, time=days[0], path="/first"),
        answered(api, time=days[1], path="/second", method="PATCH", record="/clients/7"),
        answered(api, time=days[2], path="/third", status=404, reason=Reason("not_found", [])),
    )
    found = lambda query: re.findall(r"/(first|second|third)\b", visitor.get(f"/console/requests?{query}").text)  # noqa: E731
    assert found("since=2026-03-10") == ["third", "second"]
    assert found("until=2026-03-10") == ["second", "first"]
    assert found("since=2026-03-10&until=2026-03-10") == ["second"]
    assert found("writes=true") == ["second"]
    assert found("writes=false") == ["third", "first"]
    assert found("code=not_found") == ["third"]
    page = visitor.get("/console/requests")
    assert "/console/records/clients/7" in page.links
    assert "/console/requests?code=not_found" in page.links
    assert visitor.get("/console/requests?since=odd").status == 422
    for query in (
        f"since={today}&until=2020-01-01",
        "until=0001-01-05",
        "since=0001-01-01",
        "until=9999-12-31",
        "since=9999-12-31",
    ):
        assert visitor.get(f"/console/requests?{query}").status in {200, 422}, query


def test_the_page_of_a_refused_request_names_the_wrong_fields_and_the_code(api, visitor):
    write(api, answered(api, time=as_instant(now()), status=422, reason=Reason("validation_failed", ["name", "<b>"])))
    page = visitor.get(link_to_a_request(visitor.get("/console/requests?code=validation_failed")))
    assert "Wrong fields: name , <b> ." in page.text
    assert 'href="/docs/errors#validation_failed"' in page.html
    assert "Add permission" not in page.text


def test_a_missing_scope_leads_to_the_form_of_the_key_which_saves_nothing_by_itself(api, visitor, reader):
    write(api, answered(api, key_id=reader, time=as_instant(now()), status=403, reason=FORBIDDEN))
    refused = link_to_a_request(visitor.get("/console/requests?code=missing_scope"))
    page = visitor.get(refused)
    assert "did not have the permission clients:write , which this request needs." in page.text
    (form,) = [link for link in page.links if "add=" in link]
    edit = visitor.get(form)
    assert {"clients:write", "clients:read"} <= {box["value"] for box in edit.all("input") if "checked" in box}
    assert "Now: Can read clients. After saving: Can read and edit clients." in edit.text
    assert "clients:write" not in visitor.get(f"/console/keys/{reader}").text, "nothing is saved yet"
    visitor.submit(form, action=f"/console/keys/{reader}/edit")
    assert "clients:write" in visitor.get(f"/console/keys/{reader}").text
    assert "has this permission now" in visitor.get(refused).text
    assert "not saved yet" not in visitor.get(form).text
    assert visitor.get(f"/console/keys/{reader}/edit?add=odd:scope").status == 200


def test_a_revoked_key_is_offered_no_scope(api, visitor, reader):
    write(api, answered(api, key_id=reader, time=as_instant(now()), status=403, reason=FORBIDDEN))
    visitor.submit(f"/console/keys/{reader}/revoke", confirmation="Reader")
    page = visitor.get(link_to_a_request(visitor.get("/console/requests?code=missing_scope")))
    assert "did not have the permission clients:write , which this request needs." in page.text
    assert "Add permission" not in page.text


@pytest.fixture
def still():
    """The clock stands still, so that no hour and no day ends meanwhile."""
    with time_machine.travel(now(), tick=False):
        yield


def test_all_pages_count_the_same_requests_in_the_same_span(api, visitor, reader, still):
    start = now().replace(minute=0, second=0, microsecond=0)
    today, timezone = asked(api, lambda tx: (tx.today, tx.actor.timezone))
    midnight = datetime.combine(date.fromisoformat(today), time(), ZoneInfo(timezone))
    moments = [start - timedelta(hours=hours, minutes=-1) for hours in (0, 22, 23, 24, 25)]
    moments += [midnight - timedelta(days=days, minutes=sign) for days in (6, 7, 29, 30) for sign in (-1, 1)]
    moments = [min(moment, now()) for moment in moments]
    write(
        api,
        *(answered(api, time=as_instant(moment)) for moment in moments),
        *(answered(api, time=as_instant(moment), status=429, operation=None) for moment in moments),
        *(answered(api, key_id=reader, time=as_instant(moment), status=500) for moment in moments),
    )
    spans = {name: visitor.get(f"/console/requests?span={name}") for name in ("24h", "7d", "30d")}
    shown = {name: number(page.text, TOTAL) for name, page in spans.items()}
    since = {
        "24h": start - timedelta(hours=23),
        "7d": midnight - timedelta(days=6),
        "30d": midnight - timedelta(days=29),
    }
    expected = {name: 3 * sum(moment >= since[name] for moment in moments) for name in spans}
    assert shown == expected
    for name, page in spans.items():
        cells = [
            cell for rows in page.all("details", "shares") for cell in rows.all("td", **{"data-label": "Requests"})
        ]
        assert sum(int(cell.text.replace(",", "")) for cell in cells) == shown[name], name
    assert number(visitor.get("/console").text, r"([\d,]+) requests") == shown["24h"]
    api_page = visitor.get("/console/api").text
    assert number(api_page, r"Last 24 hours ([\d,]+) request") == shown["24h"]
    failures = visitor.get("/console/api").html.partition("Server errors in the last 24 hours")[2]
    assert failures.count("/console/requests/2") == min(5, shown["24h"] // 3)
    sparklines = re.findall(r"([\d,]+) requests?", visitor.get("/console/keys").html)
    of_keys = {key: visitor.get(f"/console/keys/{key}") for key in (api.key_id, reader)}
    charts = {key: number(visitor.get(f"/console/requests?span=30d&key_id={key}").text, TOTAL) for key in of_keys}
    assert sum(charts.values()) == shown["30d"]
    assert sorted(map(str, charts.values())) == sorted(sparklines)
    for key, page in of_keys.items():
        columns = [table.all("td", "number", **{"data-label": "Requests"}) for table in page.all("table")]
        assert [sum(int(cell.text) for cell in cells) for cells in columns if cells] == [charts[key]] * 2
    days = f"since={(midnight - timedelta(days=6)).date()}&until={midnight.date()}"
    chosen = visitor.get(f"/console/requests?{days}").text
    assert number(chosen, TOTAL) == shown["7d"]
    listed = visitor.get(f"/console/requests?{days}").html.count('href="/console/requests/2')
    assert listed == min(50, shown["7d"])
