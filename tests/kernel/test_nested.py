"""Nested resources: which refusal comes first."""

import pytest

GOOD, BAD = {"name": "Launch"}, {"name": 5}


def refusal(answer):
    """What was refused, in the few words that tell."""
    missing = answer.json["message"].partition(" in this account")[0].removeprefix("There is no such ")
    return (answer.status, answer.code, missing if answer.status == 404 else sorted(answer.json.get("errors", {})))


@pytest.mark.parametrize("number", ["999", "0", "01", "x", "-1", "9007199254740992", "9" * 30])
def test_a_parent_that_is_none_is_told_first_whatever_else_is_wrong(api, number):
    path, existing = f"/projects/{number}/milestones", f"/projects/{api.make('/projects')['id']}/milestones"
    missing = (404, "not_found", "project")
    plain, other = {"Content-Type": "text/plain"}, {"If-Match": '"another-state"'}
    for answer in (
        api.get(path),
        api.post(path, GOOD),
        api.post(path, BAD),
        api.call("POST", path, raw=b"{"),
        api.post(path, GOOD, headers=plain),
        api.patch(f"{path}/1", BAD),
        api.patch(f"{path}/x", GOOD, headers=other),
        api.delete(f"{path}/1", headers=other),
    ):
        assert refusal(answer) == missing
    assert refusal(api.post(existing, BAD)) == (422, "validation_failed", ["name"])
    assert api.call("POST", existing, raw=b"{").code == "malformed_json"
    assert api.post(existing, GOOD, headers=plain).code == "unsupported_media_type"
    assert api.post(existing, GOOD).status == 201


def test_an_unknown_parameter_is_told_before_a_parent_that_is_none(api):
    for method, path, body in (
        ("GET", "/projects/999/milestones", None),
        ("POST", "/projects/999/milestones", BAD),
        ("PATCH", "/projects/999/milestones/1", BAD),
        ("DELETE", "/projects/999/milestones/1", None),
    ):
        answer = api.call(method, path, body, query="stauts=open")
        assert refusal(answer) == (422, "unknown_parameter", ["stauts"])
        assert refusal(api.call(method, path, body)) == (404, "not_found", "project")
    assert refusal(api.get("/projects/999/milestones", "page=0")) == (422, "validation_failed", ["page"])


def test_a_missing_child_is_told_after_its_parent_and_before_the_body(api):
    path = f"/projects/{api.make('/projects')['id']}/milestones"
    made = api.make(path)["id"]
    other = {"If-Match": '"another-state"'}
    for number in ("999", "x", "0", "9007199254740992"):
        for answer in (api.patch(f"{path}/{number}", BAD, headers=other), api.delete(f"{path}/{number}")):
            assert refusal(answer) == (404, "not_found", "milestone")
    assert api.patch(f"{path}/{made}", BAD, headers=other).code == "precondition_failed"
    assert refusal(api.patch(f"{path}/{made}", BAD)) == (422, "validation_failed", ["name"])


def test_a_retry_under_another_parent_is_another_request(api):
    first, second = (f"/projects/{api.make('/projects')['id']}/milestones" for _ in range(2))
    key = {"Idempotency-Key": "k"}
    made = api.post(first, GOOD, headers=key)
    again = api.post(first, GOOD, headers=key)
    assert (again.data, again.headers["idempotency-replayed"]) == (made.data, "true")
    assert again.headers["etag"] == made.headers["etag"]
    assert api.post(second, GOOD, headers=key).code == "idempotency_key_reused"
    assert (len(api.get(first).data), len(api.get(second).data)) == (1, 0)
