"""Requests of an agency, written into its log and read from there."""

from datetime import datetime, timedelta

import msgspec

from retainer.identity.actors import operator_of
from retainer.traffic import request_log
from retainer.traffic.answered import RequestLine
from retainer.traffic.recorder import RequestRecorder
from retainer.traffic.request_log import LogFilter
from retainer.values.exact import as_instant

NOON = "2026-03-10T12:00:00.000000Z"


def answered(api, **changes):
    """A request of the agency as the log knows it."""
    usual = RequestLine(
        time=NOON,
        request_id="req_1",
        method="GET",
        path="/clients",
        status=200,
        duration_ms=1.5,
        operation="listClients",
        account_id=api.account_id,
        user_id=api.admin_id,
        key_id=api.key_id,
        key="rtn_abcd",
        address="192.0.2.1",
        record=None,
    )
    return msgspec.structs.replace(usual, **changes)


def later(seconds, start=NOON):
    return as_instant(datetime.fromisoformat(start) + timedelta(seconds=seconds))


def write(api, *batch):
    writing = RequestRecorder()
    writing.add(batch)
    writing.write(api.store)


def listed(api, after=None, limit=50, **wanted):
    with api.store.begin(operator_of(api.store, api.account_id), write=False) as tx:
        return request_log.list_requests(tx, LogFilter(**wanted), after=after, limit=limit)


def asked(api, function, *arguments, **options):
    with api.store.begin(operator_of(api.store, api.account_id), write=False) as tx:
        tx.snapshot()
        return function(tx, *arguments, **options)
