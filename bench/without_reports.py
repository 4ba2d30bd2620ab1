"""Retainer without the sums that reports read, for the price of keeping them: python -m bench.without_reports PORT."""

import sys

from retainer.cli import cli
from retainer.rollups import changes

changes._apply = lambda *_: None  # noqa: SLF001
changes.insert = lambda tx, table, record, **hidden: tx.insert(table, record, **hidden)
sys.argv = ["retainer", "serve", "--threads", "16", "--port", sys.argv[1]]
cli()
