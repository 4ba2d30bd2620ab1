"""What is declared is what two lists say, which were typed by hand.

endpoints.tsv has the operations of the specification, additions.tsv those that we offer beyond it.
"""

import re

from tests.contract.cases import OPERATIONS, rows_of

LISTED = rows_of("endpoints.tsv")
ADDED = rows_of("additions.tsv")


def test_the_list_has_every_operation_of_the_specification_once():
    assert len(LISTED) == len(set(LISTED)) == 84


def nameless(path):
    """A path without the names of its parameters: the specification says {quote}, where we say {quote_id}."""
    return re.sub(r"\{\w+\}", "{}", path)


def test_the_declared_operations_are_those_of_the_lists():
    declared = [(operation.method, nameless(operation.path), operation.scope or "-") for operation in OPERATIONS]
    assert sorted(declared) == sorted((method, nameless(path), scope) for method, path, scope in LISTED + ADDED)


def test_every_operation_has_an_id_of_its_own():
    assert len({operation.id for operation in OPERATIONS}) == len(OPERATIONS)
