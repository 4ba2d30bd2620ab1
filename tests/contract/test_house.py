"""How the house is built: layers, budgets, and one door to the database; told from the files alone."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.code_map import LAYERS as LAYERS_OF_MAP
from tools.code_map import MAP, code_map, sentence

import retainer
from retainer.billing.work import KINDS
from retainer.kernel.resource import Resource
from retainer.store.row_mapper import Derived
from retainer.values.records import WRITE_ONLY, Record
from tests.contract.cases import OPERATIONS

SRC = Path(retainer.__file__).parent
MIGRATIONS = SRC / "schema" / "migrations"
FILES = sorted(path for path in SRC.rglob("*.py") if not path.is_relative_to(MIGRATIONS / "versions"))
LAYERS = [
    "errors",
    "fairness",
    "settings",
    "background",
    "values",
    "store",
    "schema",
    "kernel",
    "identity",
    "identity.people",
    "identity.keys",
    "identity.sign_in",
    "outbound",
    "jobs",
    "rollups",
    "shared",
    "documents",
    "crm",
    "billing",
    "work",
    "support",
    "sites",
    "files",
    "mail",
    "reports",
    "resources",
    "events",
    "batches",
    "api",
    "web",
    "openapi",
    "reference",
    "backup",
    "doctor",
    "transfer",
    "exchange",
    "job_kinds",
    "traffic",
    "server",
    "server.http",
    "server.monitoring",
    "console",
    "client_pages",
    "app",
    "demo",
    "processes",
    "cli",
    "__main__",
]
"""Each imports only from itself and from those above it, so that no two of them depend on each other."""
HANDLERS = [each.handler for each in OPERATIONS if each.handler.__module__ != Resource.__module__]
"""Those that are functions of an area; plain operations are declared."""
AREAS = ("identity", "crm", "billing", "work", "support", "sites", "files", "mail", "reports", "events", "batches")
UNSCOPED = {
    "traffic/usage.py",
    "rollups/doctor.py",
    "doctor/examination.py",
    "doctor/surroundings.py",
    "identity/accounts.py",
    "identity/people/users.py",
    "identity/keys/keys.py",
    "identity/actors.py",
    "identity/people/sessions.py",
    "identity/sign_in/sign_in.py",
    "client_pages/visitors.py",
    "outbound/leases.py",
    "outbound/pause.py",
    "backup/embedded.py",
    "server/monitoring/housekeeping.py",
    "server/monitoring/metrics.py",
    "traffic/recorder.py",
    "schema/migrations/__init__.py",
}
"""The files that open a transaction over all accounts; one more is a decision."""


def name_of(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> set[str]:
    """The modules and names of the package that a file imports, dotted, without the package's name."""
    found = set()
    nodes: list[ast.AST] = [tree(path)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        nodes += ast.iter_child_nodes(node)
    return {name.removeprefix("retainer.") for name in found if name.startswith("retainer.")} - {"__version__"}


def layer_of(name: str) -> int:
    """The layer of a dotted name: that of its longest known beginning."""
    known = [(len(part), place) for place, part in enumerate(LAYERS) if f"{name}.".startswith(f"{part}.")]
    assert known, f"{name} has no layer"
    return max(known)[1]


def test_errors_mark_the_fields_that_they_name():
    """Pages show the label of a field in place of its name, which an error stands in marks for."""
    unmarked = set()
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".error", ".note")):
                texts = [ast.unparse(each) for each in node.args[1:2] if isinstance(each, ast.Constant | ast.JoinedStr)]
                unmarked |= {text for text in texts if re.search(r"[a-z]_[a-z]", re.sub("{[^{}]*}", "", text))}
    assert unmarked == set()


def test_each_class_has_a_name_of_its_own():
    names = Counter(node.name for path in FILES for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_file_is_longer_than_350_lines():
    lines = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: count for name, count in lines.items() if count > 350} == {}


DECLARED = {
    *("Table", "type[Record]", "type[Query]", "type[Struct]", "type[msgspec.Struct]"),
    *("Routes", "Source", "Dialect", "bool", "tuple[Table, ...]", "tuple[Part, ...]", "Targets"),
}
"""What the program declares: as many as there are in its text, whatever is requested."""
BOUNDED = {
    *("doctor/references.py", "doctor/texts.py"),
    *("billing/kinds/dated.py", "billing/to_bill.py", "console/editing/fields.py", "console/editing/references.py"),
    *("console/names.py", "crm/currency.py", "exchange/undoing.py"),
    *("documents/printable.py", "mail/texts.py", "reference/answers.py"),
    *("reports/money.py", "reports/common.py", "reports/utilisation.py"),
    *("rollups/changes.py", "rollups/record_totals.py", "rollups/summaries.py"),
    *(
        "shared/relations.py",
        "store/statements.py",
        "store/streams.py",
        "store/transaction.py",
        "store/tx.py",
        "traffic/counts.py",
        "values/reading.py",
    ),
    *("work/templates.py",),
}
"""Modules whose caches have arguments that only code names: columns, kinds of work, subsets of a report's filters."""


def test_a_cache_that_a_request_can_fill_has_a_bound():
    unbounded = set()
    for path in FILES:
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.FunctionDef) or "cache" not in map(ast.unparse, node.decorator_list):
                continue
            kinds = {ast.unparse(each.annotation) for each in [*node.args.args, *node.args.kwonlyargs]}
            if kinds - DECLARED:
                unbounded.add(name_of(path))
    assert unbounded == BOUNDED, "use lru_cache with a maxsize, or say here that only code names the arguments"


def module_of(path: Path) -> str:
    return name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_a_layer_imports_only_from_below():
    files = [path for path in FILES if path != SRC / "__init__.py"]
    layers = {module_of(path): layer_of(module_of(path)) for path in files}
    upward = [
        (module, name)
        for path, module in zip(files, layers, strict=True)
        for name in imports(path)
        if layer_of(name) > layers[module]
    ]
    assert upward == []


def modules() -> dict[str, set[str]]:
    """The modules of the package, each with those that it imports when it runs."""
    names = {module_of(path): path for path in FILES}
    return {
        name: {module if module in names else module.rpartition(".")[0] for module in imports(path)}
        & (names.keys() - {name})
        for name, path in names.items()
    }


def test_no_step_of_an_invoice_asks_for_the_kind_of_work():
    names = {name for kind in KINDS for name in (kind.name, kind.field)}
    steps = ["reading", "merging", "rules", "work", "writing", "lines", "credit_notes/credit_notes"]
    steps += [f"invoices/{name}" for name in ("draft", "pricing", "lifecycle", "writing", "invoices")]
    for step in steps:
        nodes = list(ast.walk(tree(SRC / "billing" / f"{step}.py")))
        texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
        assert names.isdisjoint(texts | {node.attr for node in nodes if isinstance(node, ast.Attribute)}), step


def test_no_modules_import_each_other_in_a_circle():
    left = modules()
    while free := {name for name, needs in left.items() if not needs & left.keys()}:
        left = {name: needs for name, needs in left.items() if name not in free}
    assert left == {}


def test_nobody_imports_handlers_but_the_demo_and_imports():
    handlers = {f"{each.__module__}.{each.__name__}".removeprefix("retainer.") for each in HANDLERS}
    importing = {name_of(path) for path in FILES if imports(path) & handlers}
    assert {name for name in importing if not name.startswith("demo/")} == {
        "exchange/documents/imports.py",
        "exchange/imports.py",
        "exchange/record_imports.py",
        "exchange/undoing.py",
    }


def test_every_resource_is_one_file_of_an_area_or_of_a_room_in_it():
    queries = {each.query for each in OPERATIONS if each.paged}  # plain lists are declared where their filters are
    declared = {each.__module__.removeprefix("retainer.") for each in (*HANDLERS, *queries)}
    assert {name.split(".")[0] for name in declared} == set(AREAS)
    rooms = {name.rpartition(".")[0] for name in declared}
    inner = {"billing.quotes", "billing.invoices", "billing.credit_notes", "identity.keys", "identity.people"}
    assert rooms == {*AREAS, *inner} - {"identity"}


def test_tables_are_imported_and_not_looked_up_by_their_names():
    looked_up = [
        (name_of(path), node.lineno)
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Subscript)
        and ast.unparse(node.value).endswith("metadata.tables")
        and isinstance(node.slice, ast.Constant)
    ]
    assert looked_up == []


def test_a_decorator_returns_the_handler_unchanged():
    for handler in HANDLERS:
        assert inspect.isfunction(handler)
        assert getattr(sys.modules[handler.__module__], handler.__name__) is handler
        assert not hasattr(handler, "__wrapped__")


def test_a_handler_is_short_and_says_what_it_does():
    for handler in HANDLERS:
        (function,) = ast.parse(inspect.getsource(handler)).body
        statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt)][1:]
        assert len(statements) - 1 < 15, f"{handler}: without its docstring"
        assert inspect.getdoc(handler).splitlines()[0].endswith("."), handler


def test_only_the_store_begins_and_ends_transactions():
    begun = re.compile(r"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT)\b")
    found = [
        (name_of(path), ast.unparse(node))
        for path in FILES
        if "store" not in path.relative_to(SRC).parts
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.Attribute) and node.attr in {"commit", "rollback"})
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and begun.match(node.value))
    ]
    assert found == []


def test_types_are_described_to_msgspec_in_one_module():
    reads = re.compile(r"(msgspec\.convert|json\.Decoder)\(|\bdecode\(.*\btype=")
    calls = [(path, node) for path in FILES for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    assert {name_of(path) for path, node in calls if reads.search(ast.unparse(node))} == {"values/decoding.py"}


def test_there_is_no_cryptography_of_our_own():
    homemade = re.compile(
        r"\b(import hmac|hashlib\.(?!sha256\b|file_digest\b)\w+|from hashlib import (?!sha256$).*|.*\bxor\b)"
    )
    lines = [(path, line) for path in FILES for line in ast.unparse(tree(path)).splitlines()]
    assert [(name_of(path), line) for path, line in lines if homemade.search(line)] == []


def test_transactions_over_all_accounts_are_opened_in_few_places():
    calls = {
        name_of(path)
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"unscoped", "unscoped_one"}
    }
    assert calls == UNSCOPED


def test_the_code_map_says_what_each_module_is():
    assert MAP.read_text(encoding="utf-8") == code_map(), "make map writes it anew"


def test_the_code_map_names_each_folder_once_in_the_order_of_the_layers():
    assert sorted(SRC / folder for folder in LAYERS_OF_MAP) == sorted({path.parent for path in FILES})
    layers = [layer_of(folder.replace("/", ".")) for folder in LAYERS_OF_MAP if folder]
    assert layers == sorted(layers)


def test_a_module_says_in_one_sentence_what_it_is():
    assert [path for path in FILES if path.name != "__main__.py" and not sentence(path).endswith(".")] == []


def test_tests_and_benchmarks_do_not_import_each_other():
    root = SRC.parent.parent
    for folder, others in (("tests", "bench"), ("bench", "tests"), ("testing", "tests|bench")):
        importing = re.compile(rf"^\s*(from|import) ({others})\b", re.MULTILINE)
        files = (root / folder).rglob("*.py")
        assert [path for path in files if importing.search(path.read_text(encoding="utf-8"))] == []


# Tables, types and migrations agree

SHAPES = {
    (operation.resource.table, shape)
    for operation in OPERATIONS
    for shape in [operation.answer.model]
    if operation.resource.table is not None and isinstance(shape, type) and issubclass(shape, Record)
}


def is_derived(hint: Any) -> bool:
    return any(isinstance(mark, Derived) for mark in getattr(hint, "__metadata__", ()))


@pytest.mark.parametrize(("table", "shape"), sorted(SHAPES, key=str), ids=lambda part: getattr(part, "__name__", ""))
def test_the_columns_of_a_table_are_the_fields_of_its_type(table, shape):
    hints = get_type_hints(shape, include_extras=True)
    plain = get_type_hints(shape)
    kept = {field.name for field in msgspec.structs.fields(shape) if field.default is not WRITE_ONLY}
    fields = {name: NoneType in get_args(plain[name]) for name in kept if not is_derived(hints[name])}
    columns = [
        column for column in table.c if column.name != "account_id" and not {"folds", "hidden"} & column.info.keys()
    ]
    stored = {column.name: column.nullable for column in columns if column.name in fields or column.name not in hints}
    assert fields == stored


def test_the_name_of_a_test_has_at_most_80_characters():
    names = re.compile(r"^ *def (test_\w{76,})\(", re.MULTILINE)
    files = (SRC.parents[1] / "tests").rglob("test_*.py")
    assert [name for file in files for name in names.findall(file.read_text(encoding="utf-8"))] == []


def test_each_target_that_a_workflow_makes_exists():
    root = SRC.parents[1]
    workflows = [file.read_text(encoding="utf-8") for file in (root / ".github/workflows").glob("*.yml")]
    made = {target for text in workflows for line in re.findall(r"run: make (.+)", text) for target in line.split()}
    assert {"lint", "coverage", "dist"} < made
    assert made <= set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_each_action_of_a_workflow_is_pinned_by_its_commit():
    text = "".join(file.read_text(encoding="utf-8") for file in (SRC.parents[1] / ".github").rglob("*.yml"))
    assert {bool(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v[\d.]+", use)) for use in re.findall("uses: (.+)", text)} == {
        True
    }


def test_programs_that_tests_need_are_installed_by_a_user_who_may_become_root(tmp_path):
    for name, script in {"id": "echo 1000", "sudo": f'echo "$@" >>{tmp_path}/ran', "php": "", "npm": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    found = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    found.pop("RETAINER_TEST_WITHOUT", None)
    subprocess.run(["sh", "tools/programs.sh", "browser"], cwd=SRC.parents[1], env=found, check=True)
    assert re.search(r"apt-get install .* php-curl$", (tmp_path / "ran").read_text(), re.MULTILINE)


def test_each_test_file_that_a_make_target_names_exists():
    root = SRC.parents[1]
    targets = subprocess.run(["make", "-n", "unit", "cluster"], cwd=root, capture_output=True, text=True, check=True)
    named = set(re.findall(r"(?<= )tests/\S+", targets.stdout))
    assert {name for name in named if not (root / name).exists()} == set()
    assert len(named) > 20


def test_locked_versions_fit_the_declared_dependencies():
    project = tomllib.loads((SRC.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    groups, extras = project["dependency-groups"], project["project"]["optional-dependencies"]
    served = [*project["project"]["dependencies"], *extras["postgres"], *extras["valkey"]]
    built = {name: [*groups["build"], *groups.get(name, [])] for name in ("build", "release")}
    wanted = {"run": served, "dev": [*served, *groups["build"], *groups["dev"]], **built}
    for file, requirements in wanted.items():
        text = (SRC.parents[1] / "requirements" / f"{file}.txt").read_text(encoding="utf-8")
        locked = {canonicalize_name(name): version for name, version in re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", text)}
        for requirement in map(Requirement, filter(lambda each: isinstance(each, str), requirements)):
            version = locked.get(canonicalize_name(requirement.name), "0")
            assert version in requirement.specifier, f"{requirement} in requirements/{file}.txt: run make lock"


def test_a_server_installs_nothing_that_only_builds_it():
    installed = (SRC.parents[1] / "requirements/run.txt").read_text(encoding="utf-8")
    assert re.findall(r"^(?:build|hatchling|editables)==", installed, re.MULTILINE) == []
