"""Write docs/code-map.md, with one sentence for each module: python -m tools.code_map."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "retainer"
MAP = ROOT / "docs" / "code-map.md"
LAYERS = (
    "",
    "values",
    "store/engines",
    "store",
    "schema",
    "schema/migrations",
    "kernel",
    "identity",
    "identity/people",
    "identity/keys",
    "identity/sign_in",
    "outbound",
    "jobs",
    "rollups",
    "shared",
    "documents",
    "crm",
    "billing",
    "billing/quotes",
    "billing/invoices",
    "billing/kinds",
    "billing/credit_notes",
    "work",
    "support",
    "sites",
    "sites/monitor",
    "files",
    "mail",
    "mail/sender",
    "reports",
    "events",
    "events/sender",
    "batches",
    "web",
    "openapi",
    "reference",
    "backup",
    "doctor",
    "transfer",
    "exchange",
    "exchange/documents",
    "traffic",
    "server",
    "server/http",
    "server/monitoring",
    "console",
    "console/actions",
    "console/controls",
    "console/editing",
    "console/kinds",
    "console/pages",
    "console/reports",
    "client_pages",
    "demo",
    "processes",
    "cli",
)
HEAD = """\
# Code map

Each module with its own first sentence; `make map` writes this page, and a test compares it with the tree. Folders
stand in the order of the layers: each imports only from those above it.
"""


def sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring, without the noun that repeats its name."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def code_map() -> str:
    """Return the page."""
    parts = [HEAD]
    for folder in LAYERS:
        files = sorted((SRC / folder).glob("*.py"))
        package = sentence(SRC / folder / "__init__.py")
        parts.append(f"## {folder or 'retainer'}\n\n{package}\n")
        rows = [f"- `{file.name}`: {sentence(file)}" for file in files if file.name != "__init__.py"]
        parts += ["\n".join(rows) + "\n"] if rows else []
    return "\n".join(parts)


if __name__ == "__main__":
    MAP.write_text(code_map(), encoding="utf-8")
