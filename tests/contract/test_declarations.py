"""What is declared is what the specification lists; its operations were typed once, by hand, into endpoints.tsv."""

from tests.contract.cases import OPERATIONS, rows_of

LISTED = rows_of("endpoints.tsv")
NOT_BUILT = rows_of("not_built_yet.tsv")


def test_the_list_has_every_operation_of_the_specification_once():
    assert len(LISTED) == len(set(LISTED)) == 84


def test_the_declared_operations_are_those_of_the_list():
    declared = sorted((it.method, it.path, it.scope or "-") for it in OPERATIONS)
    assert declared == sorted(row for row in LISTED if row[:2] not in NOT_BUILT)


def test_what_is_not_built_yet_is_listed_and_not_declared():
    """A slice that is declared takes its rows out of not_built_yet.tsv, so that the file only shrinks."""
    declared = {(it.method, it.path) for it in OPERATIONS}
    assert set(NOT_BUILT) <= {row[:2] for row in LISTED}
    assert declared.isdisjoint(NOT_BUILT)
    assert len(NOT_BUILT) == len(set(NOT_BUILT))


def test_every_operation_has_an_id_of_its_own():
    assert len({it.id for it in OPERATIONS}) == len(OPERATIONS)
