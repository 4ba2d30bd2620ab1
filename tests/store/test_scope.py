"""The account is added to statements through attributes that SQLAlchemy keeps private: its minor version is pinned."""

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from sqlalchemy import select

from retainer.schema.crm import clients, external_contacts
from retainer.store.statements import scoped


def test_the_version_that_is_installed_is_the_one_that_is_pinned():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "sqlalchemy>=2.1,<2.2" in project["dependencies"]
    assert version("sqlalchemy").startswith("2.1.")


def test_the_private_attributes_are_there_and_mean_what_they_meant():
    plain = select(clients.c.id)
    assert plain._where_criteria == ()  # noqa: SLF001
    assert len(plain.where(clients.c.id == 1)._where_criteria) == 1  # noqa: SLF001
    assert plain._setup_joins == ()  # noqa: SLF001
    assert plain.join(external_contacts)._setup_joins  # noqa: SLF001
    assert plain._compile_state_factory(plain, None)._get_display_froms() == plain.get_final_froms()  # noqa: SLF001


def test_a_join_that_cannot_be_limited_is_refused():
    with pytest.raises(TypeError, match="Write joins as"):
        scoped(select(clients.c.id).join(external_contacts))


def test_every_table_of_a_statement_is_limited_however_deep():
    inner = select(external_contacts.c.client_id)
    text = str(scoped(select(clients.c.id).where(clients.c.id.in_(inner))))
    assert text.count("account_id = :account_id") == 2
