"""References to records that do not exist: a cluster refuses them in ways of its own, and the API answers as ever."""

import pytest

from tests.contract.cases import BODIES, UNKNOWN_ID, references, sample, send, with_reference
from tests.databases import only_postgresql

pytestmark = only_postgresql


@pytest.mark.parametrize("operation", [operation for operation in BODIES if references(operation)], ids=str)
def test_a_reference_to_nothing_is_an_error_of_its_field(api, operation):
    request = sample(api, operation)
    for path in references(operation):
        answer = send(api, request, body=with_reference(operation, request.body, path, UNKNOWN_ID))
        assert ".".join(path) in answer.errors, answer
