"""Options that a table declares, for commands with an option for each field of a record or a filter."""

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Annotated, Any, TypeVar

import typer

F = TypeVar("F", bound=Callable[..., None])


def text(description: str, metavar: str | None = None) -> Any:
    return Annotated[str | None, typer.Option(metavar=metavar, help=description)]


def number(description: str, metavar: str | None = None) -> Any:
    return Annotated[int | None, typer.Option(metavar=metavar, help=description)]


def flag(names: str, description: str) -> Any:
    return Annotated[bool | None, typer.Option(names, help=description, show_default=False)]


def with_options(options: Mapping[str, Any], **defaults: Any) -> Callable[[F], F]:
    """Give a command these options before its own ones. It takes them as keywords, by default None.

    Typer reads the options of a command from its signature (PEP 362).
    """

    def extend(command: F) -> F:
        declared = signature(command, eval_str=True)
        own = [each for each in declared.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        listed = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=options[name])
            for name in options
        ]
        first = sum(each.kind is Parameter.POSITIONAL_OR_KEYWORD for each in own)
        command.__signature__ = declared.replace(parameters=[*own[:first], *listed, *own[first:]])  # type: ignore[attr-defined]
        return command

    return extend
