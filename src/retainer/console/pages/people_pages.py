"""The pages of people: the list, their forms, and all sessions."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from retainer.console import words
from retainer.console.controls.control import Field
from retainer.console.controls.plain import Choices, Flag, IdChoice
from retainer.console.editing.calls import changes_of, errors_at, new_of
from retainer.console.editing.fields import fields_of
from retainer.console.editing.form_pages import FormPage, Section, stored
from retainer.console.names import Link
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.key_pages import PAUSE, people_options, tell_webhooks
from retainer.console.pages.person_page import MAX_REASSIGNED, TIMER, count_open, list_path, reassign
from retainer.console.values import TableBlock, Value, table_of
from retainer.errors import invalid
from retainer.events import webhooks
from retainer.identity.audit import Fields
from retainer.identity.keys import key_list, keys
from retainer.identity.keys.key_list import Key
from retainer.identity.people import second_factors, sessions, users
from retainer.identity.people.sessions import LINKS
from retainer.identity.people.users import UserDetails
from retainer.kernel.resource import read_id
from retainer.mail.people import kind_of_link, send_link
from retainer.reports import utilisation
from retainer.reports.common import begin
from retainer.schema import identity as schema
from retainer.store.tx import Tx
from retainer.traffic import counts
from retainer.values.exact import day_after
from retainer.work import cost_rates

PEOPLE = Section("People", "/people", schema.users, lambda tx, user_id: SimpleNamespace(**users.get_user(tx, user_id)))
ROLES = "A member sees their own time, expenses and work, a manager all records and reports, an admin everything."
ALL_DAYS = Field("all_days", "For past days, too", Flag(), "Recalculates the cost of all time recorded so far.")
HANDED_OVER = (
    "Integrations keep working: the keys and their permissions stay the same, and new changes are attributed to this "
    "person. If nobody is chosen, all keys stop."
)
BY_MAIL = Field(
    "by_mail", "Send the link by mail", Flag(), "If not, it is shown once, and you send it yourself.", default="yes"
)
SUCCESSOR = Field("assignee_id", "Assign open tasks and tickets to", IdChoice(), empty="Nobody: they stay as they are")
NEW_HOLDER = Field("new_user_id", "Hand keys over to", IdChoice(), HANDED_OVER, empty="Nobody")


def person_fields(tx: Tx, context: PageContext, user: Any) -> Iterator[Field]:
    """Yield the fields of a person; people cannot change their own role."""
    has_costs = user is not None and users.list_cost_rates(tx, user.id) != []
    for field in fields_of(UserDetails, schema.users):
        left_out = "cost_rate_from" if user is None else "role" if user.id == context.person.user_id else ""
        if field.name not in {"password", left_out}:
            label = "New hourly cost" if has_costs and field.name == "cost_rate" else field.label
            yield field._replace(label=label, hint=ROLES if field.name == "role" else field.hint)
    if has_costs:
        yield ALL_DAYS
    if user is None and context.sends_links:
        yield BY_MAIL


def values_of(_: Tx, __: PageContext, user: Any) -> Any:
    """Return the stored fields of a person; the cost is left blank, since a new one begins on a day."""
    return SimpleNamespace(**stored(UserDetails, {**vars(user), "password": None}) | {"cost_rate_from": None})


def tell_costs(tx: Tx, context: PageContext, user: Any) -> Iterator[TableBlock]:
    if found := users.list_cost_rates(tx, user.id):
        days = [words.short_day(day) if day else "The beginning" for day, _ in found]
        rows = zip(days, (words.number(amount) for _, amount in found), strict=True)
        yield table_of("Hourly cost", ("From", context.person.currency), rows, numbers=1)


def add(tx: Tx, context: PageContext, _: None, body: Fields) -> Reply:
    by_mail, details = body.pop("by_mail", False) is True, new_of(tx, UserDetails, body)
    if by_mail:
        user_id = users.create_user(tx, details)
        return being_sent(tx, context, user_id)
    user_id, link = users.invite(tx, details)
    return context.show_once(f"/people/{user_id}", "link", link.url(context.request.origin))


def edit(tx: Tx, context: PageContext, user: Any, body: Fields) -> Reply:
    all_days = body.pop("all_days", False) is True
    changed = cost_rates.set_user(tx, user.id, changes_of(tx, UserDetails, body), all_days=all_days)
    return context.redirect(f"/people/{user.id}", f"{changed['name']} saved.")


def being_sent(tx: Tx, context: PageContext, user_id: int) -> Reply:
    address, has_password = send_link(tx, user_id), kind_of_link(tx, user_id) == "password_link"
    what = "set a new password, which works for an hour," if has_password else "choose a password"
    return context.redirect(f"/people/{user_id}", f"A link to {what} is being sent to {address}.")


def tell_link(tx: Tx, context: PageContext, user: Any) -> Iterator[str]:
    is_short = context.sends_links and kind_of_link(tx, user.id) == "password_link"
    within = "an hour if it is sent by mail, else within " if is_short else ""
    yield f"{user.name} can use the link once, within {within}{LINKS.valid.days} days, to set a password."
    yield "Earlier links stop working. The current password works until a new one is set."


def create_link(tx: Tx, context: PageContext, user: Any, body: Fields) -> Reply:
    if body.get("by_mail") is True:
        return being_sent(tx, context, user.id)
    link = users.create_link(tx, user.id)
    return context.show_once(f"/people/{user.id}", "link", link.url(context.request.origin))


def keys_of(tx: Tx, _: PageContext, user: Any) -> list[Key]:
    return key_list.live_keys(tx, user_id=user.id).keys


def fields_of_deactivation(tx: Tx, context: PageContext, user: Any) -> list[Field]:
    """Return the people who can take over the keys, and the keys with their permissions and use."""
    keys, last_hour, options = keys_of(tx, context, user), counts.last_hour(tx), list[tuple[str, str]]()
    others = [each for each in users.list_users(tx) if each["is_active"] and each["id"] != user.id]
    for key in keys:
        used, allowed = context.moment(key.last_used_at), words.scopes_in_words(key.scopes)
        requests = words.count(last_hour.get(key.id, 0), "request")
        use = f"Last used {used.distance}; {requests} in the last hour." if used else "Never used."
        options.append((f"{key.id}", f"{key.name} ({key.prefix}…{key.last_four}). {allowed} {use}"))
    people, fields = IdChoice(people_options(others)), list[Field]()
    if others and 0 < sum(number for _, number in count_open(tx, context, user.id)) <= MAX_REASSIGNED:
        fields.append(SUCCESSOR._replace(control=people))
    if others and keys:
        chosen = [key_id for key_id, _ in options]
        fields.append(NEW_HOLDER._replace(control=people))
        fields.append(Field("keys", "Keys to hand over", Choices(tuple(options)), default=chosen))
    return [*fields, PAUSE] if webhooks.webhooks_of(tx, *(key.id for key in keys)) else fields


def work_of(tx: Tx, context: PageContext, user: Any) -> Iterator[tuple[Value, Value | str]]:
    """Yield what is assigned to a person and not done, and the timer that runs: each with its number or begin."""
    for work, number in count_open(tx, context, user.id):
        path = list_path(context.catalogue.find(work.kind), user.id, **work.filters)
        yield Value("link", link=Link(work.title, path)), words.number(number)
    for started_at, _ in tx.all(TIMER, user=user.id):
        yield Value("text", "Running timer"), f"since {words.moment(started_at, tx.actor.timezone, tx.now).text}"


def tell_deactivation(tx: Tx, context: PageContext, user: Any) -> Iterator[str | TableBlock]:
    keys = keys_of(tx, context, user)
    yield f"{user.name} is signed out immediately. Time, expenses and all other records are kept."
    yield f"Acting as {user.name}: {words.count(len(keys), 'key')}. All stop immediately, unless you hand them over."
    yield from tell_webhooks(tx, *(key.id for key in keys))
    if work := [*work_of(tx, context, user)]:
        note = "Choose below to whom tasks and tickets are assigned. A running timer is not recorded."
        yield table_of(f"Work of {user.name}", ("Work", "Open"), work, numbers=1, note=note)


def deactivate(tx: Tx, context: PageContext, user: Any, body: Fields) -> Reply:
    """Deactivate a person; sessions stop immediately, as do the keys that are not handed over.

    Raises `validation_failed`.
    """
    keys = keys_of(tx, context, user)
    moved, successor = hand_over(tx, keys, body), body.get("assignee_id")
    reassigned = reassign(tx, context, user.id, successor) if successor else []
    cost_rates.change_user(tx, user.id, {"is_active": False})
    sentences = [f"{user.name} deactivated."]
    if successor and reassigned:
        sentences.append(f"{words.listed(reassigned)} assigned to {users.get_user(tx, successor)['name']}.")
    if moved:
        act = "acts" if len(moved) == 1 else "act"
        sentences.append(f"{words.count(len(moved), 'key')} now {act} as {moved[0].user_name}.")
    if stopped := {key.id for key in keys} - {key.id for key in moved}:
        sentences.append(f"{words.count(len(stopped), 'key')} stopped working.")
    if body.get("pause_webhooks"):
        webhooks.pause_webhooks(tx, webhooks.webhooks_of(tx, *stopped))
    return context.redirect(f"/people/{user.id}", " ".join(sentences), kind="warn")


def hand_over(tx: Tx, held: list[Key], body: Fields) -> list[Key]:
    if not body.get("new_user_id"):
        return []
    with errors_at("new_user_id"):
        return [keys.hand_over(tx, key.id, body["new_user_id"]) for key in held if f"{key.id}" in body.get("keys", ())]


def activate(tx: Tx, context: PageContext) -> Reply:
    user = PEOPLE.find(tx, context)
    cost_rates.change_user(tx, user.id, {"is_active": True})
    return context.redirect(f"/people/{user.id}", f"{user.name} reactivated. Their keys work again.")


def tell_removal(_: Tx, __: PageContext, user: Any) -> Iterator[str]:
    yield f"Remove it only if {user.name} has lost the phone and the recovery codes, and has asked you personally."
    yield "From then on, the password alone is enough to sign in, until a new second factor is set up."


def remove_second_factor(tx: Tx, context: PageContext, user: Any, _: Fields) -> Reply:
    if user.id == context.person.user_id:
        raise invalid({"confirmation": ["Remove your own on your profile, with a code."]})
    second_factors.remove(tx, user.id)
    return context.redirect(f"/people/{user.id}", f"The second factor of {user.name} was removed.", kind="warn")


ADD = FormPage(PEOPLE, "Add person", "Add", add, fields=person_fields, reads_on=True)
EDIT = FormPage(PEOPLE, "Edit {name}", "Save", edit, tell_costs, person_fields, values_of, reads_on=True)
LINK = FormPage(
    *(PEOPLE, "Password link for {name}", "Create link", create_link, tell_link),
    fields=lambda _, context, __: [BY_MAIL] if context.sends_links else [],
)
DEACTIVATE = FormPage(
    *(PEOPLE, "Deactivate {name}?", "Deactivate", deactivate, tell_deactivation, fields_of_deactivation),
    confirmed_by=lambda tx, context, user: user.name if keys_of(tx, context, user) else "",
    is_danger=True,
)
REMOVE_SECOND_FACTOR = FormPage(
    *(PEOPLE, "Remove the second factor of {name}?", "Remove", remove_second_factor, tell_removal),
    confirmed_by=PEOPLE.confirm_name,
    is_danger=True,
)


def show_list(tx: Tx, context: PageContext) -> Reply:
    """Show all people, to admins with their rates, keys and last uses."""
    people = users.list_users(tx)
    month = utilisation.UtilisationQuery(from_=day_after(tx.today, -29), to=tx.today)
    report = utilisation.read_report(tx, month, begin(tx, month, None), since_arrival=True)
    shown: dict[str, Any] = {}
    if context.may("people"):
        keys = key_list.live_keys(tx).keys
        last_used: dict[int, str] = dict(tx.all(sessions.LAST_USES))
        shown = {
            "key_counts": {user["id"]: sum(key.user_id == user["id"] for key in keys) for user in people},
            "costs": users.current_costs(tx),
            "last_active": {user_id: context.moment(at) for user_id, at in last_used.items()},
        }
    return context.render(
        "people",
        active=[user for user in people if user["is_active"]],
        deactivated=[user for user in people if not user["is_active"]],
        utilisation={row.user_id: row.utilisation_percent for row in report.rows},
        **shown,
    )


def show_sessions(tx: Tx, context: PageContext) -> Reply:
    return context.render("sessions", sessions=sessions.list_sessions(tx), browser_in_words=browser_in_words)


def end_session(tx: Tx, context: PageContext) -> Reply:
    session_id = read_id(context.path_parameters["session"], schema.sessions)
    sessions.end(tx, session_id)
    if session_id == context.person.session_id:
        return context.redirect("/sign-in", "You have signed out.")
    return context.redirect("/sessions", "Session ended.")


def browser_in_words(user_agent: str | None) -> str:
    """Return the browser and system of a user agent: `Firefox on Linux`."""
    text = user_agent or ""
    browsers = {"Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
    systems = {"iPhone": "iPhone", "iPad": "iPad", "Android": "Android", "Windows": "Windows", "Mac OS": "macOS"}
    systems["Linux"] = "Linux"  # Android names it, too
    found = [next((names[mark] for mark in names if mark in text), "") for names in (browsers, systems)]
    return " on ".join(filter(None, found)) or text[:60] or "Unknown browser"
