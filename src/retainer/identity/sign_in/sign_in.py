"""Sign-ins to the console, by password or by a password link."""

from typing import NamedTuple

from msgspec.structs import replace
from sqlalchemy import bindparam, or_, select

from retainer.errors import FieldErrors, Refusal, invalid
from retainer.identity import audit
from retainer.identity.accounts import get_account
from retainer.identity.admins import ADMIN_COLUMNS, IS_ADMIN, Admin
from retainer.identity.audit import Target
from retainer.identity.people import password_links, passwords, second_factors, sessions, users
from retainer.identity.sign_in import pending
from retainer.identity.sign_in.pending import SecondStep
from retainer.identity.sign_in.throttle import Attempt, Origin, Throttle
from retainer.schema import identity as schema
from retainer.schema.identity import accounts
from retainer.store.engines.base import Row
from retainer.store.engines.sql import INTEGER
from retainer.store.tx import Store, Tx
from retainer.values.kinds import read_email
from retainer.values.reading import read_fields


class Browser(NamedTuple):
    """The browser of a sign-in."""

    address: str | None
    user_agent: str | None = None
    last_token: str | None = None
    """The token of its last session, which may have ended: a known browser has one."""
    networks: tuple[str, ...] = ()
    """The address; for IPv6 its networks, the smallest first."""


class SignedIn(NamedTuple):
    """A new session: its token and its admin."""

    token: str
    admin: Admin


class AccountChoice(NamedTuple):
    """One of several accounts that match an email and a password."""

    account_id: int
    name: str


class User(NamedTuple):
    """A user who may sign in, as an actor; with the state that decides."""

    admin: Admin
    is_active: bool
    password_hash: str | None

    @property
    def can_sign_in(self) -> bool:
        """Whether the user can sign in with the right password."""
        return bool(self.is_active) and self.admin.role == "admin" and self.password_hash is not None


_account = bindparam("account", type_=INTEGER)
USER_COLUMNS = ADMIN_COLUMNS | dict(schema.users.c["is_active", "password_hash"])
BY_EMAIL = (
    select(*USER_COLUMNS.values())
    .select_from(schema.users.join(accounts, accounts.c.id == schema.users.c.account_id))
    .where(
        schema.users.c.email_folded == bindparam("email"),
        or_(_account.is_(None), schema.users.c.account_id == _account),
    )
    .order_by(schema.users.c.account_id)
)
KNOWN_BROWSER = (
    select(schema.sessions.c.id)
    .select_from(schema.sessions.join(schema.users, schema.users.c.id == schema.sessions.c.user_id))
    .where(schema.sessions.c.hash == bindparam("hash"), schema.users.c.email_folded == bindparam("email"))
)
HASH = select(schema.users.c.password_hash).where(schema.users.c.id == bindparam("id"), IS_ADMIN)


def sign_in(
    store: Store, throttle: Throttle, email: str, password: str, browser: Browser, *, account_id: int | None = None
) -> SignedIn | SecondStep | list[AccountChoice]:
    """Sign an admin in, or begin the second step if the admin has a second factor.

    If email and password match several accounts and none is named, return these.

    Raises `validation_failed` if they match none, with the same message and timing for each reason, `rate_limited`
    after too many failures, and `unavailable` if too many attempts wait to be hashed.
    """
    folded, password = fold_email(email), password.strip()  # as when it was set
    origin = origin_of(store, folded, browser)
    with throttle.attempt(folded, origin) as attempt:
        with store.unscoped() as tx:
            found = [_read_user(row) for row in tx.all(BY_EMAIL, email=folded, account=account_id)]
        with throttle.turn(origin):
            matching = matching_users(found, password)
            newer_hash = renewed_hash(matching, password)
        if not matching:
            note_failure(store, found, attempt, browser)
            raise mismatch()
    if len(matching) > 1:
        return [AccountChoice(user.admin.account_id, user.admin.account_name) for user in matching]
    return start(store, matching[0], newer_hash, browser)


def finish(store: Store, throttle: Throttle, token: str, code: str, browser: Browser) -> SignedIn:
    """Finish a sign-in with a code of the second factor.

    Raises `not_found` if it has expired, `validation_failed` for a wrong code, `rate_limited` after too many.
    """
    waiting = pending.find(store, token)
    user = find_user(store, waiting.email, waiting.account_id)
    with throttle.attempt(second_factor_subject(waiting.user_id), Origin(networks_of(browser))) as attempt:
        try:
            with store.begin(acting(user, browser), write=True) as tx:
                pending.use_up(tx, token)
                second_factors.check(tx, waiting.user_id, code)
                return start_session(tx, user, browser)
        except Refusal as refusal:
            if refusal.code == "validation_failed":
                note_failure(store, [user], attempt, browser)
            raise


def set_password(
    store: Store, throttle: Throttle, token: str, password: str, browser: Browser
) -> SignedIn | SecondStep:
    """Set the password of a link's user and sign in. Other sessions of the user end, and the link is void.

    Raises `not_found` for an invalid link, `validation_failed` for an invalid password.
    """
    invitee = password_links.find(store, token)
    password = read_new_password(password)
    with throttle.turn_of_user(invitee.user_id):
        password_hash = passwords.hash_password(password)
    user = find_user(store, invitee.email, invitee.account_id)
    with store.begin(acting(user, browser), write=True) as tx:
        password_links.use_up(tx, token)
        users.set_password(tx, invitee.user_id, invitee.name, password_hash)
        return begin(tx, user, browser)


def change_password(store: Store, throttle: Throttle, admin: Admin, current: str, password: str) -> None:
    """Change the admin's own password; other sessions end. Raises `validation_failed`, `rate_limited`."""
    password = read_new_password(password)
    check_password(store, throttle, admin, current)
    with throttle.turn(own_origin(admin)):
        password_hash = passwords.hash_password(password)
    with store.begin(admin, write=True) as tx:
        users.set_password(tx, admin.user_id, admin.name, password_hash)


def add_second_factor(
    store: Store, throttle: Throttle, admin: Admin, current: str, secret: str, code: str
) -> list[str]:
    """Give the admin a second factor; return the recovery codes. Raises `validation_failed`, `rate_limited`."""
    check_password(store, throttle, admin, current)
    with store.begin(admin, write=True) as tx:
        return second_factors.add(tx, secret, code)


def remove_second_factor(store: Store, throttle: Throttle, admin: Admin, code: str) -> None:
    """Remove the admin's own second factor. Raises `validation_failed`, `locked` if the account requires it."""
    with (
        throttle.attempt(second_factor_subject(admin.user_id), own_origin(admin)),
        store.begin(admin, write=True) as tx,
    ):
        if get_account(tx)["require_second_factor"]:
            message = "This account requires a second factor of all admins. Change that in its settings first."
            raise Refusal("locked", message)
        second_factors.check(tx, admin.user_id, code)
        second_factors.remove(tx, admin.user_id)


def replace_recovery_codes(store: Store, throttle: Throttle, admin: Admin, code: str) -> list[str]:
    """Replace the admin's recovery codes; return the new ones. Raises `validation_failed`, `rate_limited`."""
    with (
        throttle.attempt(second_factor_subject(admin.user_id), own_origin(admin)),
        store.begin(admin, write=True) as tx,
    ):
        return second_factors.replace_codes(tx, code)


def second_factor_subject(user_id: int) -> str:
    """Return the subject under which wrong codes of a user count; no folded email has capitals."""
    return f"SECOND FACTOR {user_id}"


def check_password(store: Store, throttle: Throttle, admin: Admin, current: str) -> None:
    """Raise `validation_failed` unless this is the admin's password, `rate_limited` after too many failures."""
    origin = own_origin(admin)
    with throttle.attempt(admin.email, origin):
        user = find_user(store, admin.email, admin.account_id)
        with throttle.turn(origin):
            is_right = passwords.matches(user.password_hash, current.strip())
        if not is_right:
            raise invalid({"current": ["Wrong password."]})


def own_origin(admin: Admin) -> Origin:
    """Return the origin of a signed-in admin, whose browser is known."""
    return Origin((str(admin.address),), admin.session_id)


def matching_users(found: list[User], password: str) -> list[User]:
    """Return the users who can sign in with a password; without any, this takes as long."""
    candidates = [user for user in found if user.can_sign_in]
    if not candidates:
        passwords.matches(None, password)
    return [user for user in candidates if passwords.matches(user.password_hash, password)]


def renewed_hash(matching: list[User], password: str) -> str | None:
    """Return a new hash of the password if only one user matches, and the stored hash has former parameters."""
    is_outdated = len(matching) == 1 and passwords.is_outdated(matching[0].password_hash or "")
    return passwords.hash_password(password) if is_outdated else None


def start(store: Store, user: User, newer_hash: str | None, browser: Browser) -> SignedIn | SecondStep:
    """Start the session of a user, unless the password has changed meanwhile."""
    with store.begin(acting(user, browser), write=True) as tx:
        if tx.value(HASH, id=user.admin.user_id) != user.password_hash:
            raise mismatch()
        if newer_hash is not None:
            tx.update_columns(schema.users, user.admin.user_id, {"password_hash": newer_hash})
        return begin(tx, user, browser)


def begin(tx: Tx, user: User, browser: Browser) -> SignedIn | SecondStep:
    """Start the session of a user, or the second step if the user has a second factor."""
    if second_factors.find(tx, user.admin.user_id) is not None:
        return pending.create(tx, user.admin.user_id)
    return start_session(tx, user, browser)


def start_session(tx: Tx, user: User, browser: Browser) -> SignedIn:
    """Start a session within a transaction that has checked the user."""
    session_id, token = sessions.start(tx, user.admin.user_id, browser.address, browser.user_agent)
    audit.note(tx, "signed in", Target("session", session_id, user.admin.name))
    return SignedIn(token, replace(acting(user, browser), session_id=session_id))


def origin_of(store: Store, email: str, browser: Browser) -> Origin:
    """Return the origin of an attempt; a browser that was signed in with this email is known."""
    networks = networks_of(browser)
    if browser.last_token is not None:
        known = store.unscoped_one(KNOWN_BROWSER, hash=sessions.digest(browser.last_token), email=email)
        if known is not None:
            return Origin(networks, known[0])
    return Origin(networks)


def networks_of(browser: Browser) -> tuple[str, ...]:
    """Return the networks that a browser's failures count for."""
    return browser.networks or (str(browser.address),)


def note_failure(store: Store, found: list[User], attempt: Attempt, browser: Browser) -> None:
    """Note in the audit log of each account with this email that its sign-ins must wait."""
    if not attempt.is_waiting:
        return
    for user in found:
        target = Target("user", user.admin.user_id, user.admin.name)
        with store.begin(replace(user.admin, user_id=0, address=browser.address), write=True) as tx:
            audit.note(tx, "sign-in failed", target, after={"failures": attempt.failures})


def acting(user: User, browser: Browser) -> Admin:
    """Return the actor for a user and a browser."""
    return replace(user.admin, address=browser.address)


def find_user(store: Store, email: str, account_id: int) -> User:
    """Return an existing user."""
    with store.unscoped() as tx:
        return _read_user(tx.one(BY_EMAIL, email=fold_email(email), account=account_id) or ())


def fold_email(email: str) -> str:
    """Return an email in the form in which emails are compared; an invalid one matches no user."""
    try:
        return read_email(email.strip()).casefold()
    except ValueError:
        return email.strip().casefold()


def read_new_password(password: str) -> str:
    """Return a new password. Raises `validation_failed` if it is too short or too long."""
    errors = FieldErrors()
    values = read_fields(users.UserDetails, {"password": password}, errors)
    if errors or values.get("password") is None:
        raise invalid(errors or {"password": ["Is required."]})
    return str(values["password"])


def mismatch() -> Refusal:
    """Return the refusal of a sign-in, with the same message for each reason."""
    return invalid({"password": ["Wrong email or password. Only active admins can sign in."]})


def _read_user(row: Row) -> User:
    found = dict(zip(USER_COLUMNS, row, strict=True))
    is_active, password_hash = found.pop("is_active"), found.pop("password_hash")
    return User(Admin(**found), is_active, password_hash)
