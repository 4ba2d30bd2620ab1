"""Tests of what every operation has in common, generated from the declarations."""

import pytest

pytest.register_assert_rewrite("tests.contract.cases")
