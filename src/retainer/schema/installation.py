"""The installation: tables for all accounts of a database together."""

from sqlalchemy import Column, Table

from retainer.schema.columns import instant, text
from retainer.store.engines.sql import KEYED, TEXT
from retainer.store.tables import metadata

pauses = Table("pauses", metadata, Column("name", TEXT, primary_key=True), instant("since"), text("reason"), **KEYED)
"""Background work that is paused until an operator resumes it; a row is a pause."""
