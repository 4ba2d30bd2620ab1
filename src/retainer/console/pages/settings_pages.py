"""The pages of the account's settings and of the logo."""

from functools import cache
from typing import NamedTuple

from retainer.console import forms
from retainer.console.editing.fields import countries, currencies
from retainer.console.page_context import NO_STORE, PageContext, Reply
from retainer.documents.logo_files import MAX_BYTES, read_logo
from retainer.errors import Refusal
from retainer.identity import accounts, logos
from retainer.identity.account_types import AccountSettings
from retainer.identity.audit import Fields
from retainer.identity.plans import PLANS, WITH_API, includes_api
from retainer.identity.quotas import list_uses
from retainer.kernel.http import Response
from retainer.shared.numbering import NUMBERED, NextNumbers, preview_number, set_next_numbers, upcoming_numbers
from retainer.store.tx import Tx
from retainer.values.common import grouped
from retainer.values.kinds import read_pattern, timezones
from retainer.values.parameters import read_whole

WEEKDAYS = {
    "mon": "Monday",
    "tue": "Tuesday",
    "wed": "Wednesday",
    "thu": "Thursday",
    "fri": "Friday",
    "sat": "Saturday",
    "sun": "Sunday",
}
LANGUAGES = {"en": "English", "de": "German"}
TAX_OUTSIDE_EU = {"not_subject": "Not subject to VAT", "exempt": "Exempt from VAT", "export": "Export"}
IMAGE_POLICY = ("content-security-policy", "default-src 'none'; sandbox")


class NumberPreview(NamedTuple):
    """A series: its pattern, if it has one, and the number that the next record would get; None if that is invalid."""

    label: str
    pattern_name: str
    pattern: str | None
    next_name: str
    next_number: str | None


def show(tx: Tx, context: PageContext) -> Reply:
    account = accounts.get_account(tx)
    upcoming = upcoming_numbers(tx)
    plan, form = PLANS[account["plan"]], context.form
    shown = forms.shown_values(AccountSettings, account, account["document_language"])
    chosen = form.texts_of("working_weekdays") if form.texts else account["working_weekdays"]
    return context.render(
        "settings",
        account=shown | {"iban": account["iban"] and grouped(account["iban"])},
        plan=plan,
        plans_with_api=WITH_API,
        quotas=list_uses(tx),
        is_included=includes_api(account["plan"], account["trial_ends_at"], tx.now),
        is_currency_fixed=accounts.has_amounts(tx),
        currencies=list(currencies()),
        timezones=timezone_options(),
        countries=list(countries()),
        weekdays=WEEKDAYS,
        chosen_weekdays=chosen,
        languages=LANGUAGES,
        numbers=[preview(tx, context, account, name, number) for name, number in upcoming.items()],
        tax_outside_eu=TAX_OUTSIDE_EU,
        small_business=form.text("is_small_business", "yes" if account["is_small_business"] else "no"),
        second_factor=form.text("require_second_factor", "yes" if account["require_second_factor"] else "no"),
    )


def save(tx: Tx, context: PageContext) -> Reply:
    """Change the settings, or only show the next numbers. Raises `validation_failed` with all errors."""
    values = forms.read_changes(AccountSettings, context.form)
    numbers = forms.read_changes(NextNumbers, context.form)
    if context.form.text("preview"):
        return show(tx, context)
    accounts.set_account(tx, values)
    set_next_numbers(tx, numbers)
    return context.redirect("/settings", "Settings saved. They apply to new records and documents.")


def preview(tx: Tx, context: PageContext, account: Fields, next_name: str, upcoming: int) -> NumberPreview:
    """Return a series with the pattern and the next number as typed or stored."""
    table = NUMBERED[next_name]
    label, pattern_name = table.name.replace("_", " ").capitalize(), f"{next_name.removeprefix('next_')}_pattern"
    chosen = read_whole(context.form.text(next_name)) or 1
    if pattern_name not in account:
        return NumberPreview(label, pattern_name, None, next_name, str(max(upcoming, chosen)))
    pattern = context.form.text(pattern_name, account[pattern_name])
    try:
        next_number = preview_number(tx, table, read_pattern(pattern), at_least=chosen)
    except ValueError:
        next_number = None
    return NumberPreview(label, pattern_name, pattern, next_name, next_number)


def show_logo(tx: Tx, context: PageContext) -> Reply:
    logo = logos.find_logo(tx, accounts.get_account(tx)["logo_id"])
    return context.render("settings_logo", logo=logo, max_kilobytes=MAX_BYTES // 1024)


def read_logo_file(context: PageContext) -> None:
    """Read the file of a form, unless that removes the logo. Raises `validation_failed`."""
    if not context.form.text("remove"):
        content = context.form.files.get("logo", b"")
        context.logo = read_logo(context.person.account_id, content, context.run_apart)


def save_logo(tx: Tx, context: PageContext) -> Reply:
    logos.set_logo(tx, context.logo)
    return context.redirect("/settings/logo", "Logo saved. New documents show it." if context.logo else "Logo removed.")


def show_image(tx: Tx, _: PageContext) -> Reply:
    logo = logos.find_logo(tx, accounts.get_account(tx)["logo_id"])
    if logo is None:
        raise Refusal("not_found", "This account has no logo.")
    headers = [("content-type", "image/png"), NO_STORE, IMAGE_POLICY, ("x-content-type-options", "nosniff")]
    return Response(200, headers, logo.content)


@cache
def timezone_options() -> list[tuple[str, str]]:
    """Return the names of time zones, twice: as value and as label."""
    return [(name, name) for name in sorted(timezones())]
