"""The profile page, where admins change their password."""

from retainer.console.page_context import PageContext, Reply
from retainer.errors import invalid
from retainer.identity.sign_in import sign_in
from retainer.store.tx import Store


def show(_: Store, context: PageContext) -> Reply:
    """Show the signed-in admin, with the form that changes the password."""
    return context.render("profile")


def change_password(store: Store, context: PageContext) -> Reply:
    """Change the password; all other sessions end. Raises `validation_failed`, `rate_limited`."""
    form = context.form
    current, password, again = (
        form.texts_of(name)[-1] if name in form else "" for name in ("current", "password", "again")
    )
    if password != again:
        raise invalid({"again": ["Passwords don't match."]})
    sign_in.change_password(store, context.throttle, context.admin, current, password)
    return context.redirect("/profile", "Password changed. Your other sessions were signed out.")
