"""Markdown as HTML: headings with anchors, samples as tabs, methods as badges, highlighted code."""

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, String

SECTION = "h2"
"""The tag of headings with an anchor."""
ENDPOINT = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (/\S*)")
OPERATION = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) /\S*` needs ")
"""The first words of a section about an operation."""
TABS = '<fieldset class="tabs">'
METHODS = {"GET": "info", "POST": "good", "PUT": "warn", "PATCH": "warn", "DELETE": "bad"}
LANGUAGES = {"bash": "curl", "python": "Python", "javascript": "JavaScript", "php": "PHP"}
TOKENS = {Name.Tag: "name", String: "string", Keyword: "name", Comment: "comment"}
"""The tokens of code that are highlighted."""


class SectionHeading(NamedTuple):
    """The heading of a section."""

    text: str
    anchor: str
    method: str = ""
    """The method of the operation that the section describes."""


class MarkdownRenderer(RendererHTML):
    """A renderer of Markdown with our headings, tables and code."""

    def heading_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        token = tokens[index]
        return f'<{token.tag} id="{slug(tokens[index + 1].content)}">' if token.tag == SECTION else f"<{token.tag}>"

    def heading_close(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        token, text = tokens[index], tokens[index - 1].content
        label = escape(f"Link to {text.replace('`', '')}")
        link = f' <a class="anchor" href="#{slug(text)}" aria-label="{label}">#</a>' if token.tag == SECTION else ""
        return f"{link}</{token.tag}>\n"

    def table_open(self, *_: Any) -> str:
        return '<div class="cells"><table class="stacked">\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"

    def code_inline(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        content = escape(tokens[index].content, quote=False)
        if content.startswith("/docs/"):
            return f'<a href="{content}">{content}</a>'
        endpoint = ENDPOINT.fullmatch(content)
        if endpoint is None:
            return f"<code>{content}</code>"
        method, path = endpoint.groups()
        return f'<span class="badge {METHODS[method]}">{method}</span> <code>{path}</code>'

    def fence(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        """Return a block of code, or a tab of consecutive samples in several languages."""
        token = tokens[index]
        language = token.info.strip()
        wrap = ' class="wrap"' if language in {"bash", "json", "sh"} else ""
        code = f'<pre{wrap} tabindex="0"><code>{highlighted(token.content, language)}</code></pre>'
        block = f'<div class="code">{code}</div>\n'
        if language not in LANGUAGES or not (is_sample(tokens, index - 1) or is_sample(tokens, index + 1)):
            return block
        first = not is_sample(tokens, index - 1)
        group = env["groups"] = env.get("groups", 0) + first
        name = f"sample-{group}"
        chosen = " checked" if first else ""
        return (
            (f'{TABS}<legend class="hidden">Language</legend>\n' if first else "")
            + f'<input type="radio" name="{name}" id="{name}-{language}" value="{language}"{chosen}>'
            + f'<label for="{name}-{language}">{LANGUAGES[language]}</label>\n{block}'
            + ("" if is_sample(tokens, index + 1) else "</fieldset>\n")
        )


MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=MarkdownRenderer).enable("table")


def html_of(text: str) -> str:
    html: str = MARKDOWN.render(text, {})
    return html


def headings(text: str) -> list[SectionHeading]:
    tokens = MARKDOWN.parse(text)
    found = []
    for index, token in enumerate(tokens):
        if token.nesting == 1 and token.tag == SECTION:
            title, first = tokens[index + 1].content, tokens[index + 4 : index + 5]
            operation = OPERATION.match(first[0].content) if first else None
            found.append(SectionHeading(title.replace("`", ""), slug(title), operation[1] if operation else ""))
    return found


def beside_samples(html: str) -> str:
    """Return a page whose sections with samples have two columns: the text, and the samples with the response."""
    parts = re.split(r"(?=<h2 )", html)
    for index, part in enumerate(parts):
        text, tabs, samples = part.partition(TABS)
        if tabs and part.startswith("<h2 "):
            parts[index] = (
                f'<section class="operation"><div>{text}</div><div class="samples">{tabs}{samples}</div></section>\n'
            )
    return "".join(parts)


def slug(text: str) -> str:
    """Return the anchor of a heading: its letters, digits and underscores, joined by dashes."""
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-")


def is_sample(tokens: Sequence[Token], index: int) -> bool:
    return 0 <= index < len(tokens) and tokens[index].type == "fence" and tokens[index].info.strip() in LANGUAGES


def highlighted(code: str, language: str) -> str:
    if not language:
        return escape(code, quote=False)
    tokens = (
        (next((TOKENS[parent] for parent in reversed(kind.split()) if parent in TOKENS), None), text)
        for kind, text in get_lexer_by_name(language, ensurenl=False).get_tokens(code)
    )
    parts = []
    for mark, same in groupby(tokens, key=itemgetter(0)):
        plain = escape("".join(text for _, text in same), quote=False)
        parts.append(f'<span class="token-{mark}">{plain}</span>' if mark else plain)
    return "".join(parts)
