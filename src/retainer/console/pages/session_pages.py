"""The page that lists and ends sessions."""

from retainer.console.page_context import PageContext, Reply
from retainer.identity.people import sessions
from retainer.kernel.resource import read_id
from retainer.schema import identity as schema
from retainer.store.tx import Tx


def show_list(tx: Tx, context: PageContext) -> Reply:
    return context.render("sessions", sessions=sessions.list_sessions(tx), browser_in_words=browser_in_words)


def end(tx: Tx, context: PageContext) -> Reply:
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
    browser = next((name for mark, name in browsers.items() if mark in text), "")
    system = next((name for mark, name in {**systems, "Linux": "Linux"}.items() if mark in text), "")
    if browser and system:
        return f"{browser} on {system}"
    return browser or system or text[:60] or "Unknown browser"
