"""Random lives: machines whose steps send requests to an application and take the same steps in a model."""

from collections.abc import Callable

import time_machine
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.conftest import CONTRACT_CHECKER
from tests.contract_checker import NoChecks
from tests.databases import Databases
from tests.factories import ApiClient


class Life(RuleBasedStateMachine):
    """A life of the first agency, at a time that only `traveller` moves; `reader` sends requests without checks."""

    def __init__(self, databases: Databases, start: str) -> None:
        super().__init__()
        self.databases, agency = databases, databases.agencies["north"]
        app = databases.open(databases.fresh())
        self.clock = time_machine.travel(start, tick=False)
        self.traveller = self.clock.start()
        self.api, self.reader = ApiClient(app, CONTRACT_CHECKER, agency), ApiClient(app, NoChecks(), agency)
        self.api.set_account({"plan": "enterprise"})

    def teardown(self) -> None:
        self.clock.stop()
        self.databases.close()


def run_lives(begin: Callable[[], Life], number: int, count: int, steps: int, *, shrink: bool = False) -> None:
    """Run a number of lives, always the same ones for a number; shrinking one that goes wrong takes minutes."""
    chosen = settings(
        max_examples=count,
        stateful_step_count=steps,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(number)(begin), settings=chosen)  # type: ignore[arg-type]  # it only calls it
