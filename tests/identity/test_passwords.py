"""Password hashes: their cost at the start, and for unknown users."""

import subprocess
import sys

from argon2 import extract_parameters

from retainer.identity.people import passwords
from tests.length import only_full


def test_the_hash_for_unknown_users_takes_as_long_as_any_other():
    assert extract_parameters(passwords.DUMMY_HASH) == extract_parameters(passwords.hash_password("x"))
    assert not passwords.matches(None, "x")


@only_full
def test_nothing_is_hashed_when_the_program_starts():
    code = "import argon2; argon2.PasswordHasher.hash = None; import retainer.app"
    subprocess.run([sys.executable, "-c", code], check=True)
