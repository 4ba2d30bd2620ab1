"""What only the operator of the server can change: pages say so, and offer no button that can only fail."""

from datetime import timedelta

import pytest

from retainer.identity.keys import keys
from retainer.values.exact import instant_after, utcnow

ENDS = "Your trial ends in"


def set_trial(api, days: int, plan: str = "solo") -> None:
    end = instant_after(utcnow(), timedelta(days=days, minutes=-10))
    api.set_account({"plan": plan, "trial_ends_at": end})


@pytest.mark.parametrize(("days", "is_shown", "is_late"), [(15, False, False), (14, True, False), (3, True, True)])
def test_every_page_says_that_the_trial_ends_from_14_days_before_it(api, visitor, days, is_shown, is_late):
    set_trial(api, days)
    for path in ("/console", "/console/keys", "/console/settings", "/console/people/new"):
        page = visitor.get(path)
        assert (ENDS in page.text) == is_shown, path
        assert any(notice.text.startswith("Your trial") for notice in page.all("p div", "warn")) == is_late
    if is_shown:
        assert f"{ENDS} {days} days, on" in page.text
        assert "ask the operator of this server for another plan" in page.text


@pytest.mark.parametrize(("days", "plan"), [(0, "solo"), (2, "agency")])
def test_no_notice_after_the_end_or_with_a_plan_that_has_the_api(api, visitor, days, plan):
    set_trial(api, days, plan)
    assert ENDS not in visitor.get("/console").text


def main_of(page) -> str:
    return page.html.partition("<main")[2]


def test_without_a_plan_the_api_cannot_be_switched_on_and_the_page_says_whom_to_ask(api, visitor):
    visitor.submit("/console/switch", confirmation="switch off")
    api.set_account({"plan": "solo", "trial_ends_at": "2020-01-01T00:00:00Z"})
    for path in ("/console/api", "/console/switch"):
        page = visitor.get(path)
        assert "ask the operator of this server" in page.text
        assert "<form" not in main_of(page), path


def test_a_key_that_cannot_be_rotated_has_no_button_for_it(api, visitor):
    path = f"/console/keys/{api.key_id}"
    assert "Rotate…" in visitor.get(path).text
    visitor.submit("/console/switch", confirmation="switch off")
    assert "Rotate…" not in visitor.get(path).text
    assert "The API is" in visitor.post(f"{path}/rotate").text
    visitor.post("/console/switch", {"step": "on"})
    with api.operating() as tx:
        keys.revoke_key(tx, api.key_id)
    assert {f"{path}/rotate", f"{path}/edit"}.isdisjoint(visitor.get(path).links)


def test_nobody_is_offered_to_change_their_own_role(api, visitor):
    assert 'name="role"' not in visitor.get(f"/console/people/{api.admin_id}/edit").html
    assert 'name="role"' in visitor.get(f"/console/people/{api.member_id}/edit").html
