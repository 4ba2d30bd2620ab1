"""Sign-ins to the console, by password or by a password link."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from msgspec.structs import replace
from sqlalchemy import bindparam, or_, select

from retainer.errors import FieldErrors, Refusal, invalid
from retainer.identity import audit
from retainer.identity.accounts import get_account
from retainer.identity.actors import PERSON_COLUMNS, Person
from retainer.identity.people import passwords, second_factors, sessions, users
from retainer.identity.people.sessions import LINKS, SECOND_STEPS, Token
from retainer.identity.sign_in.throttle import FREE_FAILURES, Origin, Throttle
from retainer.schema import identity as schema
from retainer.store.engines.sql import INTEGER
from retainer.store.tx import Store, Tx
from retainer.values.kinds import read_email
from retainer.values.reading import REQUIRED, read_changes

T = TypeVar("T")
Answer = Callable[..., T]
"""Makes what is returned in the transaction of what a user does at the own profile, from it and new recovery codes."""


class Browser(NamedTuple):
    address: str | None
    user_agent: str | None = None
    last_token: str | None = None
    """The token of its last session, which may have ended: a known browser has one."""
    networks: tuple[str, ...] = ()


class SignInChange(NamedTuple):
    """What a user types to change their own sign-in: the current password, and a new one or a code of the app."""

    current: str
    new: str


class SignedIn(NamedTuple):
    token: str
    person: Person


_account = bindparam("account", type_=INTEGER)
BY_EMAIL = (
    select(*PERSON_COLUMNS.values(), schema.users.c.password_hash)
    .select_from(schema.users.join(schema.accounts, schema.accounts.c.id == schema.users.c.account_id))
    .where(
        schema.users.c.email_folded == bindparam("email"),
        or_(_account.is_(None), schema.users.c.account_id == _account),
        schema.users.c.is_active,
    )
    .order_by(schema.users.c.account_id)
)
HASH = select(schema.users.c.password_hash).where(schema.users.c.id == bindparam("id"), schema.users.c.is_active)


def sign_in(
    store: Store, throttle: Throttle, email: str, password: str, browser: Browser, *, account_id: int | None = None
) -> SignedIn | Token | list[Person]:
    """Sign a user in, or begin the second step if the user has a second factor.

    If email and password match users of several accounts and none is named, return these.

    Raises `validation_failed` if they match none, with the same message and timing for each reason, `rate_limited`
    after too many failures, and `unavailable` if too many attempts wait to be hashed. Only if they match, it raises
    `account_suspended` with the reason.
    """
    folded, password = fold_email(email), password.strip()  # as when it was set
    origin = origin_of(store, folded, browser)
    with throttle.attempt(folded, origin) as failures:
        found = find_users(store, folded, account_id, browser.address)
        with throttle.turn(origin.account_id or origin.networks[-1]):
            if not found:
                passwords.matches(None, password)  # takes as long
            matching = [(person, known) for person, known in found if passwords.matches(known, password)]
            is_outdated = len(matching) == 1 and passwords.HASHER.check_needs_rehash(matching[0][1] or "")
            newer_hash = passwords.hash_password(password) if is_outdated else None
        if not matching:
            note_failure(store, [person for person, _ in found], failures)
            raise mismatch()
    if len(matching) > 1:
        return [person for person, _ in matching]
    ((person, password_hash),) = matching
    person.require_running()
    with store.begin(person, write=True) as tx:
        require_same_hash(tx, person, password_hash)
        if newer_hash is not None:
            tx.update_columns(schema.users, person.user_id, {"password_hash": newer_hash})
        return begin(tx, person, browser)


def finish(store: Store, throttle: Throttle, token: str, code: str, browser: Browser) -> SignedIn:
    """Finish a sign-in with a code. Raises `not_found` if it has expired, `validation_failed`, `rate_limited`."""
    person = replace(SECOND_STEPS.find(store, token)[0], address=browser.address)
    with checked_code(store, throttle, person, origin_of(store, person.email, browser), code) as tx:
        SECOND_STEPS.use_up(tx, token)
        return start_session(tx, person, browser)


def set_password(
    store: Store, throttle: Throttle, token: str, password: str, browser: Browser, errors: FieldErrors | None = None
) -> SignedIn | Token:
    """Set the password of a link's user, sign in, and end other sessions. Raises `not_found`, `validation_failed`.

    If there are `errors` of the form already, nothing is done, and all errors are raised together.
    """
    person, errors = replace(LINKS.find(store, token)[0], address=browser.address), errors or FieldErrors()
    with errors.noting():
        password = read_new_password(password)
    errors.raise_errors()
    password_hash = hash_password(throttle, person, password)
    with store.begin(person, write=True) as tx:
        LINKS.use_up(tx, token)
        users.set_password(tx, person.user_id, person.name, password_hash)
        return begin(tx, person, browser)


def change_password(
    store: Store,
    throttle: Throttle,
    person: Person,
    change: SignInChange,
    then: Answer[T],
    errors: FieldErrors | None = None,
) -> T:
    """Change the user's own password; other sessions end. Raises as `set_password`, and `rate_limited`."""
    errors, password, known = errors or FieldErrors(), "", None
    with errors.noting():
        password = read_new_password(change.new)
    with errors.noting():
        known = check_password(store, throttle, person, change.current)
    errors.raise_errors()
    password_hash = hash_password(throttle, person, password)
    with store.begin(person, write=True) as tx:
        require_same_hash(tx, person, known)
        users.set_password(tx, person.user_id, person.name, password_hash)
        return then(tx)


def add_second_factor(
    store: Store,
    throttle: Throttle,
    person: Person,
    change: SignInChange,
    then: Answer[T],
    errors: FieldErrors | None = None,
) -> T:
    """Add the second factor that the session proposes, with recovery codes. Raises as `change_password`."""
    errors, known = errors or FieldErrors(), None
    with errors.noting():
        known = check_password(store, throttle, person, change.current)
    if errors and change.new:  # a wrong password does not hide a wrong code
        with store.begin(person, write=False) as tx, errors.noting():
            tx.snapshot()
            second_factors.check_new(tx, second_factors.propose(tx, person.session_id), change.new)
    errors.raise_errors()
    with store.begin(person, write=True) as tx:
        require_same_hash(tx, person, known)
        codes = second_factors.add(tx, second_factors.propose(tx, person.session_id), change.new)
        tx.update_columns(schema.sessions, person.session_id or 0, {"proposed_secret": None})
        return then(tx, codes)


def remove_second_factor(store: Store, throttle: Throttle, person: Person, code: str, then: Answer[T]) -> T:
    """Remove the user's own second factor. Raises `validation_failed`, `locked` if the account requires it."""
    with checked_code(store, throttle, person, own_origin(person), code) as tx:
        if get_account(tx)["require_second_factor"]:
            message = "This account requires a second factor of everyone. An admin can change that in its settings."
            raise Refusal("locked", message)
        second_factors.remove(tx, person.user_id)
        return then(tx)


def replace_recovery_codes(store: Store, throttle: Throttle, person: Person, code: str, then: Answer[T]) -> T:
    """Replace the user's recovery codes. Raises `validation_failed`, `rate_limited`."""
    with checked_code(store, throttle, person, own_origin(person), code) as tx:
        return then(tx, second_factors.replace_codes(tx))


@contextmanager
def checked_code(store: Store, throttle: Throttle, person: Person, origin: Origin, code: str) -> Iterator[Tx]:
    """Use up a code of a user's second factor in a new transaction; yield it. Wrong codes count as failures."""
    subject = f"SECOND FACTOR {person.user_id}"  # no folded email has capitals
    with throttle.attempt(subject, origin) as failures:
        try:
            with store.begin(person, write=True) as tx:
                second_factors.check(tx, person.user_id, code)
                yield tx
        except Refusal as refusal:
            if refusal.code == "validation_failed":
                note_failure(store, [person], failures)
            raise


def check_password(store: Store, throttle: Throttle, person: Person, current: str) -> str | None:
    """Return the hash of the user's password. Raises `validation_failed` for a wrong one, `rate_limited`."""
    if not current.strip():
        raise invalid({"current": [REQUIRED]})
    with throttle.attempt(person.email, own_origin(person)):
        found = find_users(store, fold_email(person.email), person.account_id, person.address)
        if not found:  # deactivated meanwhile
            raise mismatch()
        with throttle.turn(person.account_id):
            if not passwords.matches(found[0][1], current.strip()):
                raise invalid({"current": ["Wrong password."]})
            return found[0][1]


def hash_password(throttle: Throttle, person: Person, password: str) -> str:
    """Return the hash of a new password, which takes a turn of the account. Raises `unavailable` if too many wait."""
    with throttle.turn(person.account_id):
        return passwords.hash_password(password)


def require_same_hash(tx: Tx, person: Person, known: str | None) -> None:
    """Raise `validation_failed` if the password has changed since it was checked, outside of the transaction."""
    if tx.value(HASH, id=person.user_id) != known:
        raise mismatch()


def own_origin(person: Person) -> Origin:
    return Origin((str(person.address),), person.account_id, person.session_id or 0)


def begin(tx: Tx, person: Person, browser: Browser) -> SignedIn | Token:
    if second_factors.find(tx, person.user_id) is not None:
        return SECOND_STEPS.create(tx, person.user_id)
    return start_session(tx, person, browser)


def start_session(tx: Tx, person: Person, browser: Browser) -> SignedIn:
    session_id, token = sessions.start(tx, person.user_id, browser.address, browser.user_agent)
    audit.note(tx, "signed in", audit.Target("session", session_id, person.name))
    return SignedIn(token, replace(person, session_id=session_id))


def origin_of(store: Store, email: str, browser: Browser) -> Origin:
    """Return the origin of an attempt; a browser that was signed in with this email is known."""
    networks = browser.networks or (str(browser.address),)
    known = sessions.known_browser(store, browser.last_token)
    if known is None or known.email_folded != fold_email(email):
        return Origin(networks)
    return Origin(networks, known.account_id, known.session_id)


def note_failure(store: Store, people: list[Person], failures: int) -> None:
    if failures < FREE_FAILURES:
        return
    for person in people:
        with store.begin(replace(person, user_id=0, session_id=None), write=True) as tx:
            target = audit.Target("user", person.user_id, person.name)
            audit.note(tx, "sign-in failed", target, after={"failures": failures})


def find_users(
    store: Store, folded_email: str, account_id: int | None, address: str | None
) -> list[tuple[Person, str | None]]:
    """Return the active users with an email, of one account or of all, as actors, and the hash of each's password."""
    with store.unscoped() as tx:
        rows = tx.all(BY_EMAIL, email=folded_email, account=account_id)
    return [(Person(**dict(zip(PERSON_COLUMNS, row, strict=False)), address=address), row[-1]) for row in rows]


def fold_email(email: str) -> str:
    """Return an email in the form in which emails are compared; an invalid one matches no user."""
    try:
        return read_email(email.strip()).casefold()
    except ValueError:
        return email.strip().casefold()


def read_new_password(password: str) -> str:
    """Return a new password. Raises `validation_failed` if it is too short or too long."""
    read = read_changes(users.UserDetails, {"password": password})["password"]
    if read is None:
        raise invalid({"password": [REQUIRED]})
    return str(read)


def mismatch() -> Refusal:
    """Return the refusal of a sign-in, with the same message for each reason."""
    return Refusal("validation_failed", "Wrong email or password.")
