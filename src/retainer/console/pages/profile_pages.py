"""The pages of the signed-in user: the profile with its password, and the second factor."""

from retainer.console.forms import read_password
from retainer.console.page_context import PageContext, Reply
from retainer.identity import accounts
from retainer.identity.people import second_factors
from retainer.identity.sign_in import sign_in
from retainer.store.tx import Store

PATH = "/profile/second-factor"


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
    return context.render("second_factor", factor=factor, left=left, is_required=is_required)


def act(store: Store, context: PageContext) -> Reply:
    """Set the second factor up, replace its recovery codes, or remove it. Raises `validation_failed`."""
    form, person = context.form, context.person
    if "current" in form:
        current, code = form.text("current"), form.text("code")
        codes = sign_in.add_second_factor(store, context.throttle, person, current, code)
        return context.show_once(PATH, "codes", "\n".join(codes))
    if form.text("remove"):
        sign_in.remove_second_factor(store, context.throttle, person, form.text("code"))
        return context.redirect("/profile", "Second factor removed. Your password is enough to sign in.", kind="warn")
    codes = sign_in.replace_recovery_codes(store, context.throttle, person, form.text("code"))
    return context.show_once(PATH, "codes", "\n".join(codes))


def show_profile(store: Store, context: PageContext) -> Reply:
    """Show the signed-in admin, the state of the second factor, and the form that changes the password."""
    with store.begin(context.person, write=False) as tx:
        tx.snapshot()
        factor = second_factors.find(tx, context.person.user_id)
        codes = second_factors.count_codes(tx, context.person.user_id)
    return context.render("profile", factor=factor, codes=codes)


def change_password(store: Store, context: PageContext) -> Reply:
    """Change the password; all other sessions end. Raises `validation_failed`, `rate_limited`."""
    current, password = context.form.text("current"), read_password(context.form)
    sign_in.change_password(store, context.throttle, context.person, current, password)
    return context.redirect("/profile", "Password changed. Your other sessions were signed out.")
