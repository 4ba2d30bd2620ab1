"""No floats near money: checked in the syntax tree of every file of the product."""

import ast
import re
from collections.abc import Iterator

import pytest
from sqlalchemy import Float, Integer, Numeric

import retainer.app  # noqa: F401  # so that every table is known
from retainer.schema import metadata
from tests.contract.test_house import SRC, name_of, tree

NO_MONEY = (
    *("background.py", "fairness.py", "kernel/idempotency.py", "kernel/limits", "kernel/routes.py"),
    *("kernel/waiting.py", "store/", "identity/", "outbound/", "events/sender/", "sites/", "backup/", "traffic/"),
    *(
        "server/",
        "processes/",
        "jobs/",
        "mail/",
        "openapi/",
        "reference/",
        "values/reading.py",
        "values/strict_json.py",
        "console/charts.py",
        "demo/",
    ),
    "console/pages/sign_in_pages.py",
)
"""They measure seconds, shares, likeness or places of a drawing, and compute no money; the demo has it as texts."""
ALLOWED = {
    "app.py": {"float"},  # seconds of a renderer
    "kernel/representations.py": {"float"},  # the same
    "kernel/downloads.py": {"float"},  # how long a copy is kept
    "errors.py": {"literal"},  # how near a suggested name is
    "values/sentences.py": {"literal"},  # how near a suggested word is
    "console/pages/list_files.py": {"float"},  # a share becomes the decimal that JSON shows
    "exchange/export.py": {"division"},  # of paths
    "exchange/tables.py": {"rounding"},  # seconds of imported time
    "exchange/record_files.py": {"rounding"},  # minutes of imported budgets
    "console/reports/figures.py": {"rounding"},  # shares
    "console/values.py": {"rounding"},  # shares
    "console/words.py": {"division", "float", "rounding"},  # how long ago something was
    "reports/common.py": {"float"},  # the type of shares in percent
    "values/exact.py": {"division", "float"},  # shares in percent
    "values/money.py": {"rounding"},  # adds zeros to a price with few places
    "values/common.py": {"float"},  # the types of shares in percent
}
"""The rules that a module near money may break. What is not needed any more must go."""

COLUMNS = {"REAL", "Real", "Float", "FLOAT", "Double", "DOUBLE", "DOUBLE_PRECISION", "Numeric", "NUMERIC", "DECIMAL"}
ROUNDING = {"round", "quantize", "to_integral", "to_integral_value", "to_integral_exact", "limit_denominator"}
FLOATS = {"float", "total_seconds", "timestamp"}
DIVISION = {"truediv", "itruediv", "fdiv"}
FROM_FLOATS = {"from_float", "create_decimal_from_float"}
MODULES = {"math", "cmath", "statistics", "numpy"}
IN_SQL = re.compile(r"\b(REAL|FLOAT|DOUBLE|NUMERIC|AVG|ROUND|TOTAL)\b")
IN_FUNC = re.compile(r"\bfunc\.(avg|round|total)$")
JSON = {"json.load": "parse_float", "json.loads": "parse_float", "json.JSONDecoder": "parse_float"}
JSON |= {"msgspec.json.decode": "type", "msgspec.json.Decoder": "type"}


def is_fraction(node: ast.AST) -> bool:
    """Whether an expression is a Fraction by its form: with one operand that is, arithmetic stays exact or fails."""
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.Pow) and (is_fraction(node.left) or is_fraction(node.right))
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "Fraction"


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def of_name(name: str, *, imported: bool = False) -> Iterator[str]:
    """The rule that forbids a name; column types have names that anything else may have, too."""
    yield from ["float"] if name in FLOATS else []
    yield from ["rounding"] if name in ROUNDING else []
    yield from ["division"] if name in DIVISION else []
    yield from ["from a float"] if name in FROM_FLOATS else []
    yield from ["column"] if imported and name in COLUMNS else []


def of_operation(node: ast.BinOp | ast.AugAssign) -> Iterator[str]:
    if isinstance(node.op, ast.Div):
        exact = isinstance(node, ast.BinOp) and (is_fraction(node) or is_text(node.left) or is_text(node.right))
        yield from [] if exact else ["division"]
    elif isinstance(node.op, ast.Pow):
        exponent = node.right if isinstance(node, ast.BinOp) else node.value
        yield from ["power"] if isinstance(exponent, ast.UnaryOp) else []


def of_call(node: ast.Call) -> Iterator[str]:
    called = ast.unparse(node.func)
    if called.split(".")[-1] in {"Decimal", "Fraction"}:
        parts = [part for argument in node.args for part in ast.walk(argument)]
        clocks = any(isinstance(part, ast.Call) and re.match(r"(time|random)\.", ast.unparse(part)) for part in parts)
        inexact = {"literal", "division", "float"} & {rule for part in parts for rule in broken(part)}
        yield from ["from a float"] if clocks or inexact else []
    elif called in JSON:
        words = {word.arg: ast.unparse(word.value) for word in node.keywords}
        typed = called == "msgspec.json.Decoder" and node.args
        yield from [] if typed or words.get(JSON[called], "float") != "float" else ["json"]


def broken(node: ast.AST) -> Iterator[str]:
    """The rules that a node breaks."""
    if isinstance(node, ast.Constant):
        yield from ["literal"] if isinstance(node.value, float | complex) else []
        yield from ["column"] if isinstance(node.value, str) and IN_SQL.search(node.value) else []
    elif isinstance(node, ast.Name):
        yield from of_name(node.id)
    elif isinstance(node, ast.Attribute):
        yield from of_name(node.attr, imported=True)
        yield from ["average"] if IN_FUNC.search(ast.unparse(node)) else []
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        yield from of_operation(node)
    elif isinstance(node, ast.Import):
        yield from ["math" for alias in node.names if alias.name in MODULES]
    elif isinstance(node, ast.ImportFrom):
        yield from ["math"] if node.module in MODULES else []
        yield from [rule for alias in node.names for rule in of_name(alias.name, imported=True)]
    elif isinstance(node, ast.Call):
        yield from of_call(node)


def findings(tree: ast.AST, where: str = "") -> Iterator[tuple[str, str]]:
    """Each rule that is broken, after the function or class in which it is."""
    where = tree.name if isinstance(tree, ast.FunctionDef | ast.ClassDef) else where
    yield from [(where, rule) for rule in broken(tree)]
    for child in ast.iter_child_nodes(tree):
        yield from findings(child, where)


def trees() -> dict[str, ast.Module]:
    return {name_of(path): tree(path) for path in SRC.rglob("*.py")}


def test_no_floating_point_is_anywhere_near_money():
    found: dict[str, set[str]] = {}
    for name, module in trees().items():
        rules = {rule for _, rule in findings(module)}
        if rules and not name.startswith(NO_MONEY):
            found[name] = rules
    assert found == ALLOWED


def test_one_module_rounds_money_and_few_others_minutes_and_shares():
    used = {
        name: {node.id for node in ast.walk(module) if isinstance(node, ast.Name)} for name, module in trees().items()
    }
    rounding = {name for name, names in used.items() if "half_up" in names}
    reports = {f"reports/{name}.py" for name in ("common", "overview", "profitability", "utilisation")}
    others = {"sites/uptime.py", "console/reports/figures.py", "exchange/time_files.py"}
    assert rounding == {"values/exact.py", "values/money.py", *others, *reports}


def test_columns_keep_whole_numbers_or_text():
    columns = [column for table in metadata.sorted_tables for column in table.c]
    amounts = [column for column in columns if column.info.get("money")]
    assert [str(column) for column in columns if isinstance(column.type, Float | Numeric)] == []
    assert [str(column) for column in amounts if not isinstance(column.type, Integer)] == []
    assert {"invoices.total", "credit_notes.total", "expenses.amount"} < set(map(str, amounts))


@pytest.mark.parametrize(
    ("planted", "rule"),
    [
        ("CENT = 0.01", "literal"),
        ("it.total = 1e2 * units", "literal"),
        ("share = 1j", "literal"),
        ("net = float(gross)", "float"),
        ("net: float = 0", "float"),
        ("minutes = passed.total_seconds() // 60", "float"),
        ("read = {'amount': float}", "float"),
        ("net = gross / 119 * 100", "division"),
        ("net = gross / (1 + rate)", "division"),
        ("net = gross / Fraction(rate) ** 2", "division"),
        ("net = gross / hundredths(Fraction(rate))", "division"),
        ("units /= 100", "division"),
        ("from operator import truediv", "division"),
        ("total = reduce(operator.truediv, parts)", "division"),
        ("units = round(exact)", "rounding"),
        ("units = list(map(round, parts))", "rounding"),
        ("amount = exact.quantize(CENT)", "rounding"),
        ("units = exact.to_integral_value(ROUND_HALF_EVEN)", "rounding"),
        ("import math", "math"),
        ("from math import ceil", "math"),
        ("import statistics", "math"),
        ("Column('amount', sa.Float)", "column"),
        ("Column('amount', Numeric(asdecimal=False))\nfrom sqlalchemy import Numeric", "column"),
        ("from sqlalchemy import REAL", "column"),
        ("tx.run(text('ALTER TABLE invoices ADD COLUMN net REAL'))", "column"),
        ("average = select(func.avg(invoices.c.total))", "average"),
        ("scale = 10 ** -digits", "power"),
        ("scale = 10\nscale **= -2", "power"),
        ("rate = Decimal(0.1)", "from a float"),
        ("rate = Decimal(part / whole)", "from a float"),
        ("rate = decimal.Decimal(str(float(rate)))", "from a float"),
        ("rate = Decimal(random.random())", "from a float"),
        ("rate = Decimal.from_float(rate)", "from a float"),
        ("rate = Fraction(0.1)", "from a float"),
        ("body = json.loads(text)", "json"),
        ("body = json.JSONDecoder(parse_float=float).decode(text)", "json"),
        ("body = msgspec.json.decode(raw)", "json"),
        ("body = msgspec.json.Decoder().decode(raw)", "json"),
    ],
)  # fmt: skip
def test_what_is_planted_is_found(planted, rule):
    assert ("settle", rule) in set(findings(ast.parse("def settle():\n  " + planted.replace("\n", "\n  "))))


@pytest.mark.parametrize(
    "exact",
    [
        "net = gross / (1 + Fraction(rate) / 100)",
        "part = amount * Fraction(quantity) / Fraction(whole)",
        "net, rest = gross * 100 // 119, gross * 100 % 119",
        "path = folder / 'retainer.db'",
        "path = folder / f'{name}.db'",
        "scale = 10 ** digits",
        "rate = Decimal('0.1') * Decimal(100)",
        "body = json.loads(text, parse_float=Decimal)",
        "body = msgspec.json.Decoder(list[TaxShare]).decode(raw)",
    ],
)
def test_what_is_exact_is_let_be(exact):
    assert list(findings(ast.parse(exact))) == []
