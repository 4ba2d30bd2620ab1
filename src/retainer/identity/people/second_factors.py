"""The second factor of users: codes of an authenticator app (TOTP, RFC 6238), and recovery codes for a lost phone."""

import secrets
from base64 import b32encode
from datetime import datetime
from typing import NamedTuple

import pyotp
from pyotp.exceptions import OTPVerificationError
from sqlalchemy import bindparam, delete, func, select

from retainer.errors import Refusal, invalid
from retainer.identity import audit
from retainer.identity.people import sessions
from retainer.schema.identity import recovery_codes, second_factors, users
from retainer.schema.identity import sessions as sessions_table
from retainer.store.tx import Tx

RECOVERY_CODES = 10
WRONG = "Wrong code. Enter the six digits that the app shows now, or a recovery code."
USED = "This code was already used. Wait for the next one."


class SecondFactor(NamedTuple):
    id: int
    secret: str
    last_step: int
    created_at: str


FACTOR = select(*second_factors.c[SecondFactor._fields]).where(second_factors.c.user_id == bindparam("user"))
REMOVE = delete(second_factors).where(second_factors.c.user_id == bindparam("user"))
CODES = select(func.count()).select_from(recovery_codes).where(recovery_codes.c.user_id == bindparam("user"))
REMOVE_CODES = delete(recovery_codes).where(recovery_codes.c.user_id == bindparam("user"))
USE_CODE = REMOVE_CODES.where(recovery_codes.c.hash == bindparam("hash"))


def setup_address(secret: str, email: str) -> str:
    return pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name="Retainer")


def find(tx: Tx, user_id: int) -> SecondFactor | None:
    row = tx.one(FACTOR, user=user_id)
    return None if row is None else SecondFactor(*row)


def count_codes(tx: Tx, user_id: int) -> int:
    return int(tx.value(CODES, user=user_id))


def propose(tx: Tx, session_id: int | None) -> str:
    """Return the secret that a session proposes for a second factor. It is made once, and the server keeps it.

    A transaction that only reads returns an empty text if there is none yet.
    """
    secret = tx.field(sessions_table.c.proposed_secret, session_id or 0)
    if secret is None and not tx.writes:
        return ""
    if secret is None:
        secret = pyotp.random_base32(32)
        tx.update_columns(sessions_table, session_id or 0, {"proposed_secret": secret})
    return str(secret)


def check_new(tx: Tx, secret: str, code: str) -> int:
    """Return the time step of the code of a new second factor. Raises `validation_failed`."""
    if find(tx, tx.actor.user_id) is not None:
        raise invalid({"code": ["You already have a second factor. Remove it first."]})
    step = matching_step(secret, code, tx.now) if secret else None
    if step is None:
        raise invalid({"code": ["Wrong code. Enter the six digits that the app shows now."]})
    return step


def add(tx: Tx, secret: str, code: str) -> list[str]:
    """Add a second factor and end other sessions; return the recovery codes. Raises `validation_failed`."""
    user_id, step = tx.actor.user_id, check_new(tx, secret, code)
    tx.insert_raw(second_factors, {"user_id": user_id, "secret": secret, "last_step": step})
    sessions.end_all_of(tx, user_id)
    audit.note(tx, "second factor added", target_of(tx, user_id))
    tx.store.tell_user(tx, user_id, "Your second factor was set up", None)
    return new_codes(tx, user_id)


def check(tx: Tx, user_id: int, code: str) -> None:
    """Accept a code of a user's app or a recovery code, each once. Raises `validation_failed`."""
    factor = find(tx, user_id)
    if factor is None:
        raise invalid({"code": [WRONG]})
    step = matching_step(factor.secret, code, tx.now)
    if step is not None:
        if step <= factor.last_step:
            raise invalid({"code": [USED]})
        tx.update_columns(second_factors, factor.id, {"last_step": step})
    elif tx.change(USE_CODE, user=user_id, hash=code_hash(code)):
        audit.note(tx, "recovery code used", target_of(tx, user_id), after={"left": count_codes(tx, user_id)})
        tx.store.tell_user(tx, user_id, "One of your recovery codes was used", None)
    else:
        raise invalid({"code": [WRONG]})


def replace_codes(tx: Tx) -> list[str]:
    user_id = tx.actor.user_id
    tx.run(REMOVE_CODES, user=user_id)
    audit.note(tx, "recovery codes replaced", target_of(tx, user_id))
    tx.store.tell_user(tx, user_id, "Your recovery codes were replaced", None)
    return new_codes(tx, user_id)


def remove(tx: Tx, user_id: int) -> None:
    """Remove the second factor of a user, with the recovery codes. Raises `not_found`."""
    if find(tx, user_id) is None:
        raise Refusal("not_found", "This user has no second factor.")
    tx.run(REMOVE, user=user_id)
    tx.run(REMOVE_CODES, user=user_id)
    audit.note(tx, "second factor removed", target_of(tx, user_id))
    tx.store.tell_user(tx, user_id, "Your second factor was removed", None)


def new_codes(tx: Tx, user_id: int) -> list[str]:
    """Create recovery codes of 80 bits; only their hashes are stored."""
    codes = [b32encode(secrets.token_bytes(10)).decode() for _ in range(RECOVERY_CODES)]
    for code in codes:
        tx.insert_raw(recovery_codes, {"user_id": user_id, "hash": code_hash(code)})
    return ["-".join(code[start : start + 4] for start in range(0, len(code), 4)) for code in codes]


def matching_step(secret: str, code: str, now: str) -> int | None:
    """Return the time step of a code, if it is the current one or a neighbour's; clocks differ."""
    digits = code.replace(" ", "")
    if len(digits) != 6 or not digits.isascii() or not digits.isdigit():
        return None
    try:
        moment = datetime.fromisoformat(now)
        return int(pyotp.TOTP(secret).verify_and_get_timecode(digits, for_time=moment, valid_window=1))
    except OTPVerificationError:
        return None


def code_hash(code: str) -> str:
    return sessions.digest("".join(letter for letter in code.upper() if letter.isalnum()))


def target_of(tx: Tx, user_id: int) -> audit.Target:
    return audit.Target("user", user_id, str(tx.field(users.c.name, user_id)))
