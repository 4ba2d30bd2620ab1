"""Retainer without the summaries that reports read, for the price of keeping them: without_reports.py PORT."""

import contextlib
import sys

from retainer.cli import cli
from retainer.rollups import summaries

summaries.add = lambda *_, **__: None
summaries.tracking = lambda *_, **__: contextlib.nullcontext()
sys.argv = ["retainer", "serve", "--threads", "16", "--port", sys.argv[1]]
cli()
