"""The pages of the API and its switch, and of keys: the list, details, and their forms."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

import msgspec

from retainer.console import charts, words
from retainer.console.controls.control import Field, Options
from retainer.console.controls.days import Boundary
from retainer.console.controls.plain import Choice, Flag, IdChoice, Scopes
from retainer.console.editing.calls import changes_of, new_of
from retainer.console.editing.fields import choose_fields
from retainer.console.editing.filters import Filters
from retainer.console.editing.form_pages import FormPage, Section
from retainer.console.labels import MISSING
from retainer.console.names import Link
from retainer.console.page_context import NO_STORE, PageContext, Reply
from retainer.console.values import TableBlock, Value, table_of
from retainer.events import webhooks
from retainer.identity import accounts
from retainer.identity.audit import Fields
from retainer.identity.keys import key_list, keys
from retainer.identity.keys.key_list import Key, KeyFilter
from retainer.identity.keys.keys import SCOPES, KeyChanges, KeyDetails, Rotation
from retainer.identity.people import users
from retainer.identity.plans import WITH_API
from retainer.kernel.http import Response
from retainer.schema import identity as schema
from retainer.store.tx import Tx
from retainer.traffic import counts, request_log
from retainer.values.exact import day_after, instant_after
from retainer.values.parameters import read_whole
from retainer.values.reading import read_record

COVERED = {
    "clients": "Clients, contacts and tags",
    "projects": "Projects, milestones and templates",
    "tasks": "Tasks",
    "time": "Time entries",
    "invoices": "Quotes, invoices, payments and credit notes",
    "expenses": "Expenses",
    "tickets": "Tickets and replies",
    "sites": "Sites, plugins and uptime",
    "webhooks": "Webhooks and their deliveries",
    "reports": "All reports",
}
"""The resources of the scopes, and what each covers."""
PRESETS = {
    "Read everything": tuple(scope for scope in SCOPES if scope.endswith(":read")),
    "Time tracking": ("clients:read", "projects:read", "tasks:read", "time:read", "time:write"),
    "Billing": (
        *("clients:read", "projects:read", "time:read"),
        *("invoices:read", "invoices:write", "expenses:read", "expenses:write"),
    ),
    "Reporting": ("clients:read", "projects:read", "reports:read"),
}
"""Scopes for common integrations."""
USUAL_DAYS = 90
"""Days after which a new key expires, unless its creator chooses another day."""
OVERLAPS = {"0": "Immediately", "1": "After an hour", "24": "After a day", "72": "After 3 days", "168": "After a week"}
API_OFF = "The API is off, so the key does not work before you switch it on."

KEYS = Section("Keys", "/keys", schema.api_keys, key_list.get_key)
NAME, USER = choose_fields(KeyDetails, schema.api_keys, "name", "user_id")
NAME = NAME._replace(hint="The integration that uses this key, such as Zapier, Looker or your website.")
ACTS_AS = (
    "Changes made with this key are attributed to this person. As a member, it can change only that member's time and "
    "expenses. If the person is deactivated, the key stops working."
)
UNTIL = "The key works until the end of this day. If blank, it never expires."
SCOPES_FIELD = Field("scopes", "Permissions", Scopes(tuple(COVERED.items())))
HOURS = Field("hours", "The current key stops", Choice(tuple(OVERLAPS.items())), is_required=True, default="24")
PAUSE = Field("pause_webhooks", "Pause the webhooks that were set up with what stops", Flag())


def is_api_on(tx: Tx) -> bool:
    return bool(accounts.get_account(tx)["api_enabled"])


def people_options(people: Iterable[Fields]) -> Options:
    return tuple((f"{each['id']}", f"{each['name']} ({each['role']})") for each in people)


def fields_of_new(tx: Tx, context: PageContext, _: None) -> list[Field]:
    """Return the fields of a new key; a button without script fills the scopes in by a link."""
    people = [each for each in users.list_users(tx) if each["is_active"]]
    me, preset = f"{context.person.user_id}", PRESETS.get(context.query.text("preset"), ())
    acts_as = USER._replace(label="Acts as", control=IdChoice(people_options(people)), default=me, hint=ACTS_AS)
    last_day = Field("expires_at", "Last day", Boundary(is_end=True), UNTIL, default=day_after(tx.today, USUAL_DAYS))
    scopes = SCOPES_FIELD._replace(control=Scopes(SCOPES_FIELD.control.options, presets=tuple(PRESETS.items())))
    return [NAME, acts_as, last_day, scopes._replace(default=preset or None)]


def create(tx: Tx, context: PageContext, _: None, body: Fields) -> Reply:
    new = keys.create_key(tx, new_of(tx, KeyDetails, {"user_id": context.person.user_id, **body}))
    return context.show_once(f"/keys/{new.id}", "key", new.value)


def added_scopes(context: PageContext, key: Key) -> list[str]:
    """Return the scope that a link proposes for a key: it is selected, but not saved."""
    return [scope for scope in context.query.texts_of("add") if scope in SCOPES and scope not in key.scopes]


def tell_edit(_: Tx, context: PageContext, key: Key) -> Iterator[str]:
    if added := added_scopes(context, key):
        yield f"The permission {added[0]} is selected below and not saved yet. Saved, it is for all who use this key."
        yield f"Now: {words.scopes_in_words(key.scopes)} After saving: {words.scopes_in_words([*key.scopes, *added])}"
        yield "Was the request a mistake? Then change the integration, not the key."
    yield "Changes apply from the next request. To act as a different person, create a new key."


def fields_of_edit(_: Tx, context: PageContext, key: Key) -> list[Field]:
    added = added_scopes(context, key)
    return [NAME, SCOPES_FIELD._replace(default=[*key.scopes, *added] if added else None)]


def edit(tx: Tx, context: PageContext, key: Key, body: Fields) -> Reply:
    if not body.get("scopes", key.scopes):
        tx.error("scopes", f"{MISSING['scopes']}.")
        del body["scopes"]
    changed = keys.change_key(tx, key.id, changes_of(tx, KeyChanges, body))
    return context.redirect(f"/keys/{key.id}", f"{changed.name} saved. Changes apply from the next request.")


def tell_rotate(tx: Tx, _: PageContext, key: Key) -> Iterator[str]:
    current, requests = f"{key.prefix}…{key.last_four}", words.count(counts.last_hour(tx).get(key.id, 0), "request")
    yield "Rotating creates a key with the same name, person and permissions."
    yield f"The current key, {current}, works for the time you choose, so that its integration can switch."
    yield f"It made {requests} in the last hour."


def rotate(tx: Tx, context: PageContext, key: Key, body: Fields) -> Reply:
    rotation = read_record(Rotation, {"hours": read_whole(body.get("hours", HOURS.default))})
    new = keys.rotate_key(tx, key.id, rotation)
    return context.show_once(f"/keys/{new.id}", "key", new.value)


def tell_revoke(tx: Tx, context: PageContext, key: Key) -> Iterator[str]:
    """Yield what stops: how the key was used in the last hour, and the webhooks that were set up with it."""
    recent = request_log.LogFilter(key_id=key.id, since=instant_after(tx.now, -key_list.RECENT))
    operations = Counter(each.operation or "other" for each in request_log.list_requests(tx, recent).requests)
    last_used = context.moment(key.last_used_at)
    yield "It stops immediately. This can't be undone. Other keys are not affected."
    if last_used is None:
        yield "This key has never been used."
    else:
        address = f" from {key.last_used_address}" if key.last_used_address else ""
        requests = words.count(counts.last_hour(tx).get(key.id, 0), "request")
        yield f"{requests} in the last hour. Last used {last_used.distance}{address}."
    for operation, _ in operations.most_common(1):
        yield f"Most frequent operation: {operation}."
    yield from tell_webhooks(tx, key.id)


def tell_webhooks(tx: Tx, *key_ids: int) -> Iterator[str]:
    """Yield which webhooks keep sending although keys stop, if there are any."""
    if found := webhooks.webhooks_of(tx, *key_ids):
        names = ", ".join(each.description or words.host(each.url) for each in found)
        keys = "this key" if len(key_ids) == 1 else "these keys"
        yield f"Webhooks that were set up with {keys} keep sending unless you pause them: {names}."


def revoke(tx: Tx, context: PageContext, key: Key, body: Fields) -> Reply:
    keys.revoke_key(tx, key.id)
    if body.get("pause_webhooks"):
        webhooks.pause_webhooks(tx, webhooks.webhooks_of(tx, key.id))
    return context.redirect(f"/keys/{key.id}", f"{key.name} revoked. It no longer works.", kind="warn")


NEW = FormPage(
    *(KEYS, "Create key", "Create key", create),
    lambda tx, *_: [] if is_api_on(tx) else [API_OFF],
    fields_of_new,
    links=lambda tx, *_: [] if is_api_on(tx) else [("Switch on the API", "/switch")],
    reads_on=True,
)
EDIT = FormPage(KEYS, "Edit {name}", "Save", edit, tell_edit, fields_of_edit, lambda *given: given[2], reads_on=True)
ROTATE = FormPage(KEYS, "Rotate {name}", "Rotate key", rotate, tell_rotate, lambda *_: [HOURS])
REVOKE = FormPage(
    *(KEYS, "Revoke {name}?", "Revoke key", revoke, tell_revoke),
    lambda tx, _, key: [PAUSE] if webhooks.webhooks_of(tx, key.id) else [],
    confirmed_by=KEYS.confirm_name,
    is_danger=True,
)


DAYS, STATUSES = 30, get_args(key_list.Status)
RECENT, MAX_OPERATIONS = 10, 10
RECENT_FAILURES = 5


def show_list(tx: Tx, context: PageContext) -> Reply:
    query, every = context.query, key_list.list_keys(tx)
    query.texts = {"status": ["active"], "sort": ["-created_at"], **query.texts}
    filters = Filters(tx, context, KeyFilter, without={"sort"})
    asked = filters.read()
    if asked.sort.removeprefix("-") not in key_list.ORDERS:
        asked = msgspec.structs.replace(asked, sort="-created_at")
    statuses = Counter(key.status for key in every)
    options = tuple((status, f"{status.capitalize()} ({statuses[status]})") for status in STATUSES)
    return context.render(
        "keys",
        keys=key_list.list_keys(tx, asked),
        every=every,
        filters=filters.change({"status": {"control": Choice(options)}, "user_id": {"label": "Acts as"}}),
        sparklines=counts.usage(tx, DAYS),
        nothing=[0] * DAYS,
        api_enabled=is_api_on(tx),
    )


def show(tx: Tx, context: PageContext) -> Reply:
    key = KEYS.find(tx, context)
    chart = charts.daily_chart(tx, DAYS, key.id)
    operations = counts.operations(tx, counts.last_days(tx, DAYS).since, key.id)
    return context.render(
        "key",
        key=key,
        chart=chart,
        operations=operations[:MAX_OPERATIONS],
        other_requests=chart.total.requests - sum(each.requests for each in operations[:MAX_OPERATIONS]),
        recent=request_log.list_requests(tx, request_log.LogFilter(key_id=key.id), limit=RECENT).requests,
        api_enabled=is_api_on(tx),
        webhooks=webhooks.webhooks_of(tx, key.id),
    )


def first_call(tx: Tx, context: PageContext) -> Reply:
    body = b"false" if KEYS.find(tx, context).last_used_at is None else b"true"
    return Response(200, [("content-type", "application/json"), NO_STORE], b'{"has_arrived":%b}' % body)


def show_api(tx: Tx, context: PageContext) -> Reply:
    account = accounts.get_account(tx)
    keys = key_list.list_keys(tx)
    failed = request_log.LogFilter(status="5xx", since=counts.last_hours(tx).since)
    return context.render(
        "api",
        account=account,
        lacking=plan_without_api(tx, context, None),
        keys=keys,
        live=key_list.live_keys(tx),
        webhooks=webhooks.load_webhooks(tx),
        chart=charts.hourly_chart(tx),
        failures=request_log.list_requests(tx, failed, limit=RECENT_FAILURES).requests,
        names={key.id: key.name for key in keys},
    )


API = Section("API", "/api")


def choose_switch(tx: Tx, context: PageContext) -> FormPage:
    """Return the form that was sent, which does the same when sent twice; otherwise the one that changes the state."""
    if context.request.method == "POST" and not context.is_restored:
        return SWITCH_ON if context.form.text("step") == SWITCH_ON.hidden["step"] else SWITCH_OFF
    return SWITCH_OFF if is_api_on(tx) else SWITCH_ON


def plan_without_api(_: Tx, context: PageContext, __: None) -> str:
    if context.includes_api:
        return ""
    ended = ", and the trial has ended" if context.person.trial_ends_at else ""
    plan = f"The plan {context.plan.name.capitalize()} does not include the API{ended}."
    return f"{plan} For a plan that includes it ({WITH_API}), ask {context.operator}."


def tell_switch_on(tx: Tx, _: PageContext, __: None) -> Iterator[str]:
    live = key_list.live_keys(tx).keys
    yield f"{words.count(len(live), 'key')} will work again immediately." if live else "Next, create your first key."


def tell_switch_off(tx: Tx, context: PageContext, _: None) -> Iterator[str | TableBlock]:
    live, last_hour = key_list.live_keys(tx), counts.last_hour(tx)
    stopped = words.count(len(live.keys), "key stops", "keys stop")
    effect = f"{stopped} working immediately." if live.keys else "No active keys are affected."
    yield f"{effect} Nothing is deleted: the same keys work again when you switch the API back on."
    yield "Webhooks keep sending. To stop one too, pause it."
    if not live.used:
        yield "No keys were used in the last hour."
        return
    rows: list[list[Value | str]] = [
        [
            Value("link", link=Link(key.name, f"/keys/{key.id}")),
            key.user_name,
            Value("since", moment=context.moment(key.last_used_at)),
            key.last_used_address or "",
            words.number(last_hour.get(key.id, 0)),
        ]
        for key in live.used
    ]
    yield table_of("Used in the last hour", ("Key", "Acts as", "Last used", "From", "Requests"), rows, numbers=1)


def switch_on(tx: Tx, context: PageContext, _: None, __: Fields) -> Reply:
    accounts.switch_api(tx, on=True)
    return context.redirect("/api", "The API is on.")


def switch_off(tx: Tx, context: PageContext, _: None, __: Fields) -> Reply:
    live = key_list.live_keys(tx).keys
    accounts.switch_api(tx, on=False)
    return context.redirect("/api", f"The API is off. {words.count(len(live), 'key')} stopped working.", kind="warn")


SWITCH_ON = FormPage(
    *(API, "Switch the API on", "Switch the API on", switch_on, tell_switch_on),
    obstacle=plan_without_api,
    hidden={"step": "on"},
)
SWITCH_OFF = FormPage(
    *(API, "Switch the API off?", "Switch the API off", switch_off, tell_switch_off),
    confirmed_by=lambda *_: "switch off",
    is_danger=True,
)
