"""The words of the code are those of the glossary in CONTRIBUTING.md."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAD = "| term | meaning | not |\n| --- | --- | --- |\n"
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def glossary():
    """The terms, and the words that nobody should use instead."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(HEAD)[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
    return [re.findall(r"\w+", term) for term, _, _ in rows], [re.findall(r"\w+", avoided) for _, _, avoided in rows]


@cache
def names():
    """Each word of the names that our code gives, in the singular, and one of the names that have it."""
    found = {}
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    pass
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    pass
                case _:
                    continue
            for word in WORD.findall(name):
                found.setdefault(word.lower(), f"{name} in {file.relative_to(ROOT)}")
                found.setdefault(word.lower().removesuffix("s"), f"{name} in {file.relative_to(ROOT)}")
    return found


def test_the_glossary_has_forty_terms_that_the_code_uses():
    terms, _ = glossary()
    assert len(terms) >= 40
    assert [word for term in terms for word in term if word not in names()] == []


def test_no_name_in_the_code_has_a_word_that_the_glossary_replaces():
    _, avoided = glossary()
    used = {word: names()[word] for words in avoided for word in words if word in names()}
    assert used == {}
