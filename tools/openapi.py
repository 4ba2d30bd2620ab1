"""Write openapi.json: python -m tools.openapi. Refuse if something that was promised is missing."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retainer.api import RESOURCES
from retainer.kernel.routes import Routes
from retainer.openapi.document import document

PROMISED = Path(__file__).parent.parent / "openapi.json"
BASE_URL = "http://127.0.0.1:8000/api/public/v1"
Json = dict[str, Any]


def current() -> Json:
    """Return the document as the declarations make it now."""
    made: Json = json.loads(json.dumps(document(Routes(RESOURCES).bound.values(), BASE_URL)))
    return made


def promised() -> Json:
    """Return the document that was committed."""
    read: Json = json.loads(PROMISED.read_text(encoding="utf-8"))
    return read


def losses(old: Json, new: Json) -> Iterator[str]:
    """Yield what clients of the old document can no longer rely on, a sentence each; what was gained is no loss."""
    for path, methods in old["paths"].items():
        for method, operation in methods.items():
            where = f"{method.upper()} {path}"
            now = new["paths"].get(path, {}).get(method)
            if now is None:
                yield f"{where} is gone."
                continue
            yield from _lost_parameters(where, _parameters(operation, old), _parameters(now, new), (old, new))
            if "requestBody" in now and "requestBody" not in operation:
                yield f"{where} takes a body now."
            for use, taken in (("requestBody", True), ("responses", False)):
                before, after = _schemas(operation.get(use), old), _schemas(now.get(use), new)
                if before.keys() - after.keys():
                    verb = "takes" if taken else "answers"
                    yield f"{where} no longer {verb} {', '.join(sorted(before.keys() - after.keys()))}."
                for status in sorted(before.keys() & after.keys()):
                    yield from _lost_in(where, before[status], after[status], (old, new), taken=taken, seen=set())


def _resolve(node: Any, document: Json) -> Any:
    while isinstance(node, dict) and "$ref" in node:
        target: Any = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def _parameters(operation: Json, document: Json) -> Json:
    found = [_resolve(parameter, document) for parameter in operation.get("parameters", [])]
    return {f"{parameter['in']} {parameter['name']}": parameter for parameter in found}


def _lost_parameters(where: str, old: Json, new: Json, documents: tuple[Json, Json]) -> Iterator[str]:
    for place, parameter in old.items():
        if place not in new:
            yield f"{where} no longer takes the parameter {place}."
        else:
            schemas = parameter["schema"], new[place]["schema"]
            yield from _lost_in(f"{where} {parameter['name']}", *schemas, documents, taken=True, seen=set())
    for place, parameter in new.items():
        if parameter.get("required") and not old.get(place, {}).get("required"):
            yield f"{where} requires the parameter {place} now."


def _schemas(node: Any, document: Json) -> Json:
    """Return the JSON schemas of all answers by their status, or those of a body by its media type."""
    node = _resolve(node, document) or {}
    if "content" in node:
        return {media_type: body.get("schema") for media_type, body in node["content"].items()}
    bodies = {status: _resolve(node[status], document) for status in node}
    return {
        status: body.get("content", {}).get("application/json", {}).get("schema") for status, body in bodies.items()
    }


def _lost_in(
    where: str, old: Any, new: Any, documents: tuple[Json, Json], *, taken: bool, seen: set[tuple[int, int]]
) -> Iterator[str]:
    """Yield what is lost within a schema, or within each of several; all of the old must be among the new."""
    choices = _choices(new)
    for choice in _choices(old):
        if len(choices) > 1 and choice not in choices:
            yield f"{where}: {choice} is none of the choices now."
        else:
            same = choice if len(choices) > 1 else new
            yield from _lost_within(where, choice, same, documents, taken=taken, seen=seen)


def _lost_within(
    where: str, old: Any, new: Any, documents: tuple[Json, Json], *, taken: bool, seen: set[tuple[int, int]]
) -> Iterator[str]:
    """Yield what is lost within a schema; of what is `taken`, nothing may become required or be refused."""
    nodes = _resolve(old, documents[0]), _resolve(new, documents[1])
    pair = id(nodes[0]), id(nodes[1])
    if pair in seen:
        return
    seen.add(pair)
    old, new = (_plain(node, document) for node, document in zip(nodes, documents, strict=True))
    fields, now = old.get("properties", {}), new.get("properties", {})
    for name in fields.keys() - now.keys():
        yield f"{where}: the field {name} is gone."
    for name in (set(new.get("required", [])) - set(old.get("required", []))) if taken else ():
        yield f"{where}: the field {name} is required now."
    for name in (set(old.get("required", [])) - set(new.get("required", []))) if not taken else ():
        yield f"{where}: the field {name} need not come any more."
    if not taken and new.get("additionalProperties") is False and old.get("additionalProperties") is not False:
        yield f"{where}: no other field can be added now."
    words, words_now = set(map(str, old.get("enum", []))), set(map(str, new.get("enum", [])))
    if taken and words_now and words - words_now:
        yield f"{where}: {', '.join(sorted(words - words_now))} is no longer taken."
    if _types(old) - _types(new) if taken else _types(new) - _types(old):
        yield f"{where}: {'/'.join(sorted(_types(old)))} is {'/'.join(sorted(_types(new)))} now."
    for name in _compared(fields, now, taken=taken):
        yield from _lost_in(f"{where} {name}", fields[name], now[name], documents, taken=taken, seen=seen)
    if "items" in old and "items" in new:
        yield from _lost_in(where, old["items"], new["items"], documents, taken=taken, seen=seen)


def _choices(schema: Any) -> list[Any]:
    """Return the schemas of a choice of several; otherwise the schema alone, which may be a choice with null."""
    listed = [choice for choice in (schema or {}).get("anyOf", ()) if choice != {"type": "null"}]
    return listed if len(listed) > 1 else [schema]


def _compared(old: Json, new: Json, *, taken: bool) -> list[str]:
    """Return the fields of both; not those that are ignored in a body, whatever is in them."""
    return [name for name in old.keys() & new.keys() if not (taken and new[name].get("readOnly"))]


def _plain(schema: Any, document: Json) -> Json:
    """Return a schema, its reference followed; for a choice with null, the other that may be null too."""
    found: Json = _resolve(schema, document) or {}
    if "anyOf" not in found:
        return found
    choices = [_plain(choice, document) for choice in found["anyOf"]]
    merged = {key: value for choice in choices for key, value in choice.items()}
    return merged | {"type": sorted({kind for choice in choices for kind in _types(choice)})}


def _types(schema: Json) -> set[str]:
    kinds = schema.get("type", "anything")
    return {kinds} if isinstance(kinds, str) else set(kinds)


if __name__ == "__main__":
    made = current()
    lost = list(losses(promised(), made)) if PROMISED.exists() else []
    if lost:
        sys.exit("\n".join(["v1 may only gain. Lost:", *lost]))
    PROMISED.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(made['paths'])} paths written to {PROMISED.name}")
