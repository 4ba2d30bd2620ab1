"""What each code of the catalogue means, and what to do: the text of the page on errors."""

ADVICE = {
    "malformed_json": (
        "The body is not JSON that can be understood in exactly one way. `message` says where it stops: a comma "
        "too many, a member twice, a number that is too large. Correct the program that writes it."
    ),
    "bad_request": (
        "The request itself is faulty, before anything in it was looked at: no `Host` or several, a query that is "
        "no UTF-8, an `Idempotency-Key` that is no visible ASCII. Correct what `message` names."
    ),
    "missing_key": "No key was sent. Put it into `Authorization: Bearer`, or into `X-Api-Key`.",
    "invalid_key": (
        "There is no such key. Check that it was copied whole: `rtn_` and 38 letters or digits. A key of another "
        "server is unknown here."
    ),
    "revoked_key": "An admin has revoked the key. Ask for a new one; nothing brings this one back.",
    "expired_key": "The key was made with an end, which has passed. Ask an admin for a new one.",
    "user_deactivated": "The user as whom the key acts was deactivated. Ask an admin for a key of another user.",
    "plan_required": "The plan of the account, in `plan`, does not include the API. An admin can change the plan.",
    "trial_ended": "The trial is over, and the plan of the account, in `plan`, does not include the API.",
    "api_disabled": "The API is switched off for the account, and with it every key. An admin can switch it on.",
    "missing_scope": (
        "The key is valid and lacks the scope in `required_scope`; `granted_scopes` are those that it holds. Ask "
        "an admin for a key with that scope."
    ),
    "not_found": (
        "There is no such record in the account of the key: it never was, was deleted, or belongs to somebody "
        "else. These are not told apart. A path that does not exist has this code, too."
    ),
    "method_not_allowed": "The path exists and does not take this method. `Allow` has those that it takes.",
    "idempotency_in_progress": (
        "The first request with this `Idempotency-Key` is still running. Wait as long as `Retry-After` says, and "
        "send the same again: it is answered as the first was."
    ),
    "precondition_failed": (
        "The record has changed since you read the `ETag` that you sent as `If-Match`. Read it again, make your "
        "change to what it is now, and send that."
    ),
    "body_too_large": "The body is larger than 1 MiB. Send fewer lines or plugins at once.",
    "unsupported_media_type": (
        "The body is not declared as JSON. Send `Content-Type: application/json`, and no `Content-Encoding`."
    ),
    "validation_failed": "Fields or parameters break rules. `errors` has sentences under each of them, all at once.",
    "unknown_parameter": "The operation does not know a parameter of the query. `errors` names those that it knows.",
    "invalid_transition": (
        "The record cannot get from its status to the one that was sent. The sentence under `status` names those "
        "that it can become."
    ),
    "in_use": (
        "Other records need this one, and it was not deleted. `errors` says how many of which kind; move or "
        "delete them first, or archive this one instead."
    ),
    "locked": (
        "The record, or the field, is fixed: the document was issued, or the work is on an invoice. Take the work "
        "off its draft, or credit the invoice."
    ),
    "already_billed": "The work is on an invoice already. `errors` names each entry and its invoice; leave it out.",
    "nothing_to_bill": "`unbilled_work` has found nothing that is billable and not yet billed. No invoice was made.",
    "idempotency_key_reused": (
        "The `Idempotency-Key` was used for a request with another path or body in the last 24 hours. Use a new "
        "key for a new request."
    ),
    "not_owner": (
        "The time or expense is another user's, and the key acts as a member. Use a key of that user, or of an admin."
    ),
    "rate_limited": (
        "The key has used up its requests for now. Wait as long as `Retry-After` says: a request that is sent "
        "then is admitted."
    ),
    "server_error": (
        "Something went wrong in the server, and nothing was changed. Try again a little later; if it stays so, "
        "give the operator the `request_id`, under which the log has the details."
    ),
    "unavailable": (
        "The database is out of reach or busy, or too many requests wait for their bodies. Try again after "
        "`Retry-After`. A write may have been saved: send it again with its `Idempotency-Key`. A "
        "request that took too long itself was rolled back, and its message says so: ask for less in one request."
    ),
}
"""By code, in the order in which requests are examined."""
