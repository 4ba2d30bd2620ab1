"""Signing in to the console: by email and password, or by a link with which a password is set."""

from typing import NamedTuple

from msgspec.structs import replace
from sqlalchemy import bindparam, or_, select

from retainer.errors import FieldErrors, Refusal, invalid
from retainer.identity import audit
from retainer.identity.admins import ACTING, IS_ADMIN, Admin, operator
from retainer.identity.audit import Target
from retainer.identity.people import password_links, passwords, sessions, users
from retainer.identity.sign_in.throttle import Attempt, Origin, Throttle
from retainer.schema import identity as schema
from retainer.schema.identity import accounts
from retainer.store.engines.base import Row
from retainer.store.engines.sql import INTEGER
from retainer.store.tx import Store, Tx
from retainer.values.kinds import read_email
from retainer.values.reading import read_fields


class Browser(NamedTuple):
    """From where somebody signs in: the address, what the browser says it is, and the session that it last had."""

    address: str | None
    user_agent: str | None = None
    last_token: str | None = None
    """The token of the cookie, also when its session has ended: the browser is known by it."""
    networks: tuple[str, ...] = ()
    """The address as it is counted; for IPv6 its networks, the smallest first."""


class SignedIn(NamedTuple):
    """A new session: its token, for a cookie that outlives it, and whose it is."""

    token: str
    admin: Admin


class AccountChoice(NamedTuple):
    """One of several accounts that an email and a password fit."""

    account_id: int
    name: str


class User(NamedTuple):
    """A user with an email, and for which account an operator would act."""

    operator: Admin
    id: int
    name: str
    email: str
    role: str
    is_active: bool
    password_hash: str | None
    account_name: str

    @property
    def can_sign_in(self) -> bool:
        """Whether the right password is all that is missing."""
        return bool(self.is_active) and self.role == "admin" and self.password_hash is not None


_account = bindparam("account", type_=INTEGER)
STATE = schema.users.c["id", "name", "email", "role", "is_active", "password_hash"]
BY_EMAIL = (
    select(*ACTING, *STATE, accounts.c.name)
    .select_from(schema.users.join(accounts, accounts.c.id == schema.users.c.account_id))
    .where(
        schema.users.c.email_folded == bindparam("email"),
        or_(_account.is_(None), schema.users.c.account_id == _account),
    )
    .order_by(schema.users.c.account_id)
)
KNOWN_BROWSER = (
    select(schema.sessions.c.id, schema.users.c.email_folded)
    .select_from(schema.sessions.join(schema.users, schema.users.c.id == schema.sessions.c.user_id))
    .where(schema.sessions.c.hash == bindparam("hash"))
)
HASH = select(schema.users.c.password_hash).where(schema.users.c.id == bindparam("id"), IS_ADMIN)


def sign_in(
    store: Store, throttle: Throttle, email: str, password: str, browser: Browser, *, account_id: int | None = None
) -> SignedIn | list[AccountChoice]:
    """Sign an admin in; return the accounts to choose from when email and password fit several and none is named.

    Raises `validation_failed` when they fit none, in the same words and time whatever is wrong, `rate_limited` after
    too many failures (of the email from anywhere or of the network, but of a known browser only its own), and
    `unavailable` when too many wait for their passwords to be hashed.
    """
    folded, password = fold_email(email), password.strip()  # as when it was set
    origin = origin_of(store, folded, browser)
    with throttle.attempt(folded, origin) as charge:
        with store.unscoped("an email may have users in several accounts") as tx:
            found = [_user(row) for row in tx.all(BY_EMAIL, email=folded, account=account_id)]
        with throttle.turn(origin):
            fitting = fitting_users(found, password)
            newer = renewed_hash(fitting, password)
        if not fitting:
            note_failure(store, found, charge, browser)
            raise mismatch()
    if len(fitting) > 1:
        return [AccountChoice(user.operator.account_id, user.account_name) for user in fitting]
    return begin(store, fitting[0], newer, browser)


def set_password(store: Store, throttle: Throttle, token: str, password: str, browser: Browser) -> SignedIn:
    """Set the password of a link's user and sign in; other sessions of the user end, the link is used up.

    Raises `not_found` for a link that cannot be used, `validation_failed` for a password that is too short.
    """
    invitee = password_links.find(store, token)
    password = read_new_password(password)
    with throttle.turn_of_user(invitee.user_id):
        password_hash = passwords.hash_password(password)
    user = find_user(store, invitee.email, invitee.account_id)
    with store.begin(acting(user, browser), write=True) as tx:
        password_links.use_up(tx, token)
        users.set_password(tx, user.id, user.name, password_hash)
        return start_session(tx, user, browser)


def change_password(store: Store, throttle: Throttle, admin: Admin, current: str, password: str) -> None:
    """Change the admin's own password; all other sessions end. Raises `validation_failed`, `rate_limited`."""
    password = read_new_password(password)
    origin = Origin((str(admin.address),), admin.session_id)
    with throttle.attempt(admin.email, origin):
        user = find_user(store, admin.email, admin.account_id)
        with throttle.turn(origin):
            is_right = passwords.matches(user.password_hash, current.strip())
            password_hash = passwords.hash_password(password) if is_right else ""
        if not is_right:
            raise invalid({"current": ["Wrong password."]})
    with store.begin(admin, write=True) as tx:
        users.set_password(tx, user.id, user.name, password_hash)


def fitting_users(found: list[User], password: str) -> list[User]:
    """Return the users who can sign in with a password; that takes as long when there is none."""
    candidates = [user for user in found if user.can_sign_in]
    if not candidates:
        passwords.matches(None, password)
    return [user for user in candidates if passwords.matches(user.password_hash, password)]


def renewed_hash(fitting: list[User], password: str) -> str | None:
    """Return a new hash of the only fitting user's password if the stored one was made with former parameters."""
    is_outdated = len(fitting) == 1 and passwords.is_outdated(fitting[0].password_hash or "")
    return passwords.hash_password(password) if is_outdated else None


def begin(store: Store, user: User, newer_hash: str | None, browser: Browser) -> SignedIn:
    """Begin the session of a user whose password was right, unless that has changed meanwhile."""
    with store.begin(acting(user, browser), write=True) as tx:
        if tx.value(HASH, id=user.id) != user.password_hash:
            raise mismatch()
        if newer_hash is not None:
            tx.update_columns(schema.users, user.id, {"password_hash": newer_hash})
        return start_session(tx, user, browser)


def start_session(tx: Tx, user: User, browser: Browser) -> SignedIn:
    """Begin a session in the transaction in which nothing speaks against it."""
    session_id, token = sessions.start(tx, user.id, browser.address, browser.user_agent)
    audit.note(tx, "signed in", Target("session", session_id, user.name))
    return SignedIn(token, replace(acting(user, browser), session_id=session_id))


def origin_of(store: Store, email: str, browser: Browser) -> Origin:
    """Return from where an attempt comes, with the session of a browser that was signed in with this email."""
    networks = browser.networks or (str(browser.address),)
    if browser.last_token is not None:
        known = store.unscoped_one(
            "was this browser signed in", KNOWN_BROWSER, hash=sessions.digest(browser.last_token)
        )
        if known is not None and known[1] == email:
            return Origin(networks, known[0])
    return Origin(networks)


def note_failure(store: Store, found: list[User], charge: Attempt, browser: Browser) -> None:
    """Note in the audit log of each account with this email that further sign-ins must now wait."""
    if not charge.is_waiting:
        return
    for user in found:
        with store.begin(replace(user.operator, address=browser.address), write=True) as tx:
            audit.note(tx, "sign-in failed", Target("user", user.id, user.name), after={"failures": charge.failures})


def acting(user: User, browser: Browser) -> Admin:
    """Return a user as who acts, from a browser."""
    return replace(
        user.operator,
        user_id=user.id,
        role="admin",
        name=user.name,
        email=user.email,
        account_name=user.account_name,
        address=browser.address,
    )


def find_user(store: Store, email: str, account_id: int) -> User:
    """Return a user that is there."""
    with store.unscoped("as in sign_in") as tx:
        return _user(tx.one(BY_EMAIL, email=fold_email(email), account=account_id) or ())


def fold_email(email: str) -> str:
    """Return what a typed email is compared by; what is none fits nobody's."""
    try:
        return read_email(email.strip()).casefold()
    except ValueError:
        return email.strip().casefold()


def read_new_password(password: str) -> str:
    """Return a new password as it is hashed. Raises `validation_failed` for one that is too short or too long."""
    errors: FieldErrors = {}
    values = read_fields(users.UserDetails, {"password": password}, errors)
    if errors or values.get("password") is None:
        raise invalid(errors or {"password": ["Is required."]})
    return str(values["password"])


def mismatch() -> Refusal:
    """Return the refusal of a sign-in, in the same words whatever is wrong."""
    return invalid({"password": ["Wrong email or password. Only active admins can sign in."]})


def _user(row: Row) -> User:
    return User(operator(*row[:5]), *row[5:])
