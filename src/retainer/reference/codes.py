"""The explanation of each error code: what it means and what to do."""

ADVICE = {
    "malformed_json": (
        "The body is not valid JSON, or it is ambiguous. `message` says where: for example, a trailing comma, a "
        "duplicate key or a number that is too large."
    ),
    "bad_request": (
        "The request is malformed: for example, `Host` is missing or repeated, the query string is not UTF-8, or "
        "`Idempotency-Key` is not visible ASCII. `message` names the problem."
    ),
    "missing_key": "No API key was sent. Send it in `Authorization: Bearer`, or in `X-Api-Key`.",
    "invalid_key": (
        "The API key does not exist. Check that you copied it completely: `rtn_` and 38 letters or digits. Keys of "
        "another server are not valid here."
    ),
    "revoked_key": "An admin has revoked the key. This cannot be undone: ask for a new key.",
    "expired_key": "The key has expired. Ask an admin for a new one.",
    "user_deactivated": "The key's user was deactivated. Ask an admin for a key of another user.",
    "plan_required": "The account's plan, in `plan`, does not include the API. An admin can change the plan.",
    "trial_ended": "The trial has ended, and the account's plan, in `plan`, does not include the API.",
    "api_disabled": "The API is turned off for the account, for all keys. An admin can turn it on.",
    "missing_scope": (
        "The key does not have the scope in `required_scope`; `granted_scopes` lists its scopes. Ask an admin for a "
        "key with that scope."
    ),
    "not_found": (
        "The record does not exist in the account of the key: the id is wrong, the record was deleted, or it "
        "belongs to another account. Unknown paths also return this code."
    ),
    "method_not_allowed": (
        "The path exists but does not support this method. `Allow` lists the methods that it supports."
    ),
    "not_acceptable": (
        "`Accept` asks for a PDF or an e-invoice, and this operation has none. `message` names the forms that it has. "
        "A header that also accepts JSON, or that names any other form, gets JSON."
    ),
    "idempotency_in_progress": (
        "The first request with this `Idempotency-Key` is still running. Wait for the seconds in `Retry-After` and "
        "send the request again; you then get the response of the first."
    ),
    "events_gone": (
        "`after` lies before the events that are kept, or the database was restored from an older backup. Start again: "
        "note the position in `message`, read all records, and continue from that position."
    ),
    "precondition_failed": (
        "The record has changed since you read the `ETag` that you sent in `If-Match`. Read the record again, apply "
        "your change to it, and send that."
    ),
    "body_too_large": "The body is larger than 1 MiB. Send fewer lines or plugins in one request.",
    "unsupported_media_type": (
        "The body is not declared as JSON. Send `Content-Type: application/json` and no `Content-Encoding`."
    ),
    "validation_failed": "Fields or parameters are invalid. `errors` lists all errors by field.",
    "unknown_parameter": (
        "The operation does not support a parameter of the query string. `errors` lists the supported parameters."
    ),
    "invalid_transition": (
        "The record cannot change from its current status to the one you sent. The error under `status` lists the "
        "possible ones."
    ),
    "in_use": (
        "The record was not deleted because other records need it. `errors` counts them by type. Move or delete "
        "them first, or archive this record instead."
    ),
    "locked": (
        "The record or field can no longer be changed: the document was issued, or the work is on an invoice. "
        "Remove the work from its draft invoice, or credit the invoice."
    ),
    "already_billed": (
        "The work is already on an invoice. `errors` names each entry and its invoice; leave the entry out."
    ),
    "nothing_to_bill": "`unbilled_work` found no billable work that is not on an invoice yet. No invoice was created.",
    "idempotency_key_reused": (
        "The `Idempotency-Key` was used in the last 24 hours for a request with another path or body. Use a new key "
        "for a new request."
    ),
    "not_owner": (
        "The time entry or expense belongs to another user, and the key's user is a member. Use a key of that user "
        "or of an admin."
    ),
    "rate_limited": (
        "The key has reached its rate limit. Wait for the seconds in `Retry-After`; a request sent then is accepted."
    ),
    "server_error": (
        "An internal error occurred, and nothing was changed. Try again later. If it persists, give the "
        "`request_id` to the operator, who finds the details in the log."
    ),
    "unavailable": (
        "The database is unreachable or busy, or too many requests are being received. Try again after the seconds "
        "in `Retry-After`. A write may have been applied: retry it with its `Idempotency-Key`. If `message` says "
        "that the request took too long, it was rolled back: request less data."
    ),
}
"""By code, in the order in which requests are checked."""
