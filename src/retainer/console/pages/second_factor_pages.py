"""The pages of the second factor: an admin's own, and its removal by another admin."""

from retainer.console import forms
from retainer.console.cookies import Cookie
from retainer.console.page_context import ROOT, PageContext, Reply
from retainer.console.pages.person_pages import user_of
from retainer.errors import invalid
from retainer.identity import accounts
from retainer.identity.people import second_factors
from retainer.identity.sign_in import sign_in
from retainer.store.tx import Store, Tx

PATH = "/profile/second-factor"
NEW_CODES = Cookie("recovery-codes", path=ROOT + PATH)


def show(store: Store, context: PageContext) -> Reply:
    with store.begin(context.person, write=False) as tx:
        tx.snapshot()
        factor = second_factors.find(tx, context.person.user_id)
        left = second_factors.count_codes(tx, context.person.user_id)
        is_required = accounts.get_account(tx)["require_second_factor"]
    if factor is None:
        with store.begin(context.person, write=True) as tx:
            secret = second_factors.propose(tx, context.person.session_id)
        import segno  # noqa: PLC0415  # only documents and second factors need it

        address = second_factors.setup_address(secret, context.person.email)
        image = segno.make(address, error="m").svg_data_uri(scale=4, border=4, light="#fff")
        return context.render("second_factor_new", secret=secret, image=image, is_required=is_required)
    codes = (context.cookies.get(NEW_CODES.name, NEW_CODES.path) or "").split()
    return context.render(
        "second_factor", uses_up=NEW_CODES, factor=factor, codes=codes, left=left, is_required=is_required
    )


def act(store: Store, context: PageContext) -> Reply:
    """Set the second factor up, replace its recovery codes, or remove it. Raises `validation_failed`."""
    form, person = context.form, context.person
    if "current" in form:
        current, code = form.text("current"), form.text("code")
        codes = sign_in.add_second_factor(store, context.throttle, person, current, code)
        return context.set_one_time_cookie(NEW_CODES.name, PATH, " ".join(codes))
    if form.text("remove"):
        sign_in.remove_second_factor(store, context.throttle, person, form.text("code"))
        return context.redirect("/profile", "Second factor removed. Your password is enough to sign in.", kind="warn")
    codes = sign_in.replace_recovery_codes(store, context.throttle, person, form.text("code"))
    return context.set_one_time_cookie(NEW_CODES.name, PATH, " ".join(codes))


def show_removal(tx: Tx, context: PageContext) -> Reply:
    """Show what happens when a person's second factor is removed. Raises `not_found`."""
    user = user_of(tx, context)
    return context.render(
        "person_second_factor",
        user=user,
        is_self=user["id"] == context.person.user_id,
        has_factor=second_factors.find(tx, user["id"]) is not None,
    )


def remove(tx: Tx, context: PageContext) -> Reply:
    """Remove the second factor of somebody else, who has lost it. Raises `not_found`, `validation_failed`."""
    user = user_of(tx, context)
    if user["id"] == context.person.user_id:
        raise invalid({"confirmation": ["Remove your own on your profile, with a code."]})
    forms.confirm(context.form, user["name"])
    second_factors.remove(tx, user["id"])
    return context.redirect(f"/people/{user['id']}", f"The second factor of {user['name']} was removed.", kind="warn")
