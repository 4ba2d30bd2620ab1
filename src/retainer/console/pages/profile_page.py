"""The profile page, where admins change their password."""

from retainer.console.forms import read_password
from retainer.console.page_context import PageContext, Reply
from retainer.identity.people import second_factors
from retainer.identity.sign_in import sign_in
from retainer.store.tx import Store


def show(store: Store, context: PageContext) -> Reply:
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
