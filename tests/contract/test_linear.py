"""Scanning what tenants send takes time in proportion to its length: every pattern of the source.

The limit is time of the processor that this process has used: hundreds of times what a linear scan takes, and less
than a quadratic one needs for texts of this length.
"""

import ast
import contextlib
import importlib
import re
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from re import _compiler, _parser  # type: ignore[attr-defined]  # what a pattern is made of
from typing import Any, NamedTuple

import pytest

from tests.contract.test_house import FILES, module_of, name_of, tree

LENGTH, SECONDS = 100_000, 1.0
ANCHORED = {"match", "fullmatch"}
CANDIDATES = "aA0 -\n.:/#{}<>\"'*=@(,;[|`é\0"


@contextlib.contextmanager
def processor_time(seconds: float, what: str = "This") -> Iterator[None]:
    """Fail after some time of the processor, which does not count while other processes have it."""

    def fail(*_: object) -> None:
        raise AssertionError(f"{what} took more than {seconds} seconds of the processor")

    before = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Scan(NamedTuple):
    """A pattern, with whether it is looked for everywhere in a text."""

    place: str
    pattern: re.Pattern[Any]
    searches: bool


def uses(path: Path) -> dict[str, set[str]]:
    """The methods of each name of a module that are used in it."""
    found = defaultdict(set)
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found[node.value.id].add(node.attr)
    return found


MADE = {"console/controls/rows.py", "doctor/series.py", "kernel/routes.py"}
"""Modules with a pattern made of names of fields, a pattern of numbers or declared paths, around which it repeats one
class."""


def scans(path: Path) -> Iterator[Scan]:
    """Every pattern of a module, wherever it is compiled."""
    names = {
        id(node.value): node.targets[0].id
        for node in tree(path).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    calls = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call) and is_of_re(node.func)]
    for call in calls:
        module = vars(importlib.import_module(f"retainer.{module_of(path)}".removesuffix(".")))
        argument = ast.Expression(call.args[0])
        flags = [ast.unparse(each) for each in [*call.args, *(word.value for word in call.keywords)]]
        given = eval(" | ".join(flag for flag in flags if flag.startswith("re.")) or "0", module)
        try:
            pattern = re.compile(eval(compile(argument, str(path), "eval"), module), given)
        except NameError:  # of a variable
            assert name_of(path) in MADE, f"{name_of(path)}:{call.lineno}: say in MADE what the pattern is made of"
            continue
        methods = uses(path)[names.get(id(call), "")] or {ast.unparse(call.func).rpartition(".")[2]}
        yield Scan(f"{name_of(path)}:{call.lineno}", pattern, not methods <= ANCHORED)


def is_of_re(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and ast.unparse(function.value) == "re" and function.attr != "escape"


def sample(nodes: Any) -> str:
    """A text that parts of a pattern match, with what they look for around it."""
    return "".join(map(sample_of, nodes))


def sample_of(node: Any) -> str:
    kind, value = str(node[0]), node[1]
    if kind == "LITERAL":
        return chr(value)
    if kind in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
        return sample(value[2]) * max(value[0], 1)
    if kind in {"SUBPATTERN", "ASSERT"}:
        return sample(value[-1])
    if kind == "BRANCH":
        return sample(value[1][0])
    if kind in {"IN", "ANY", "NOT_LITERAL"}:
        one = _compiler.compile(_parser.SubPattern(_parser.State(), [node]))
        return next(character for character in CANDIDATES if one.fullmatch(character))
    return ""


def hostile_texts(pattern: re.Pattern[Any]) -> Iterator[str]:
    """Texts that repeat a part of a pattern, or its beginning, and then go on as it does not."""
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    nodes = list(_parser.parse(pattern.pattern, flags))
    for end in range(1, len(nodes) + 1):
        for begin in {0, end - 1}:
            part, before = sample(nodes[begin:end]), sample(nodes[:begin])
            repeated = part * (LENGTH // max(len(part), 1))
            yield from (before + repeated, repeated + "\0")


@pytest.mark.parametrize("path", [path for path in FILES if "re." in path.read_text(encoding="utf-8")], ids=name_of)
def test_each_pattern_is_matched_in_linear_time(path):
    for scan in scans(path):
        for text in set(hostile_texts(scan.pattern)):
            content = text.encode("latin-1", "replace") if isinstance(scan.pattern.pattern, bytes) else text
            with processor_time(SECONDS, scan.place):
                if scan.searches:
                    scan.pattern.findall(content)
                else:
                    scan.pattern.fullmatch(content)


def test_the_time_limit_notices_a_quadratic_pattern():
    with pytest.raises(AssertionError, match="of the processor"), processor_time(SECONDS):
        re.compile(r"([^{}]+)\{([^{}]*)\}").findall("a" * LENGTH)
