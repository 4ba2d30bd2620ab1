"""Samples: a request in curl, Python, JavaScript and PHP; tests run each of them."""

import json
import re
from typing import Any
from urllib.parse import parse_qsl

from retainer.reference.examples import Example, json_text

NAMED = {"true": "True", "false": "False", "null": "None"}
NAMES = re.compile(r"(?<= )(true|false|null)(?=,?$)", re.MULTILINE)
"""Values at the end of a line; texts end with a quote."""
PARTS = re.compile(r'(?P<text>"(?:[^"\\]|\\.)*")(?P<colon>:?)|\{\}|[{}]')
"""The parts of JSON that PHP writes in another way: texts, names of fields, and objects."""


def curl(example: Example) -> str:
    lines = [f'curl --fail-with-body "$RETAINER_URL{example.path}"']
    if example.method != ("GET" if example.request is None else "POST"):
        lines.append(f"--request {example.method}")
    lines.append('--header "Authorization: Bearer $RETAINER_KEY"')
    if example.request is not None:
        body = json_text(example.request).replace("'", r"'\''")
        lines.append(f"--json '{body}'")
    return " \\\n  ".join(lines)


def python(example: Example) -> str:
    path, _, query = example.path.partition("?")
    arguments = [
        f"f\"{{os.environ['RETAINER_URL']}}{path}\"",
        'headers={"Authorization": f"Bearer {os.environ[\'RETAINER_KEY\']}"}',
        *([f"params={literal(dict(parse_qsl(query)))}"] if query else []),
        *([] if example.request is None else [f"json={literal(example.request)}"]),
    ]
    call = "".join(f"    {argument},\n" for argument in arguments)
    lines = ["import os", "", "import requests", "", f"response = requests.{example.method.lower()}(\n{call})"]
    lines.append("response.raise_for_status()")
    return "\n".join(lines + (["print(response.json())"] if example.response else []))


def javascript(example: Example) -> str:
    options = [f'method: "{example.method}"'] if example.method != "GET" else []
    headers = ["Authorization: `Bearer ${process.env.RETAINER_KEY}`"]
    if example.request is not None:
        headers.append('"Content-Type": "application/json"')
    options.append(f"headers: {{ {', '.join(headers)} }}")
    if example.request is not None:
        options.append(f"body: JSON.stringify({json_text(example.request)})".replace("\n", "\n  "))
    inner = "".join(f"  {option},\n" for option in options)
    lines = [f"const response = await fetch(`${{process.env.RETAINER_URL}}{example.path}`, {{\n{inner}}});"]
    lines.append("if (!response.ok) throw new Error(await response.text());")
    return "\n".join(lines + (["console.log(await response.json());"] if example.response else []))


def php(example: Example) -> str:
    headers = ["'Authorization: Bearer ' . getenv('RETAINER_KEY')"]
    options = [f"CURLOPT_CUSTOMREQUEST => '{example.method}'"] if example.method != "GET" else []
    if example.request is not None:
        headers.append("'Content-Type: application/json'")
        body = json.dumps(example.request, indent=4, ensure_ascii=False)
        options.append(f"CURLOPT_POSTFIELDS => json_encode({PARTS.sub(_php, body)})".replace("\n", "\n    "))
    options += [f"CURLOPT_HTTPHEADER => [{', '.join(headers)}]", "CURLOPT_RETURNTRANSFER => true"]
    lines = [
        f"<?php\n$curl = curl_init(getenv('RETAINER_URL') . '{example.path}');",
        "curl_setopt_array($curl, [",
        *(f"    {option}," for option in options),
        "]);\n$response = curl_exec($curl);",
        "if ($response === false || curl_getinfo($curl, CURLINFO_RESPONSE_CODE) >= 400) {",
        "    throw new Exception($response ?: curl_error($curl));\n}",
    ]
    return "\n".join(lines + (["print_r(json_decode($response, true));"] if example.response else []))


def _php(part: re.Match[str]) -> str:
    if part["text"] is None:
        return {"{": "[", "}": "]", "{}": "(object) []"}[part[0]]
    text = json.loads(part["text"]).replace("\\", r"\\").replace("'", r"\'")
    return f"'{text}'{' =>' if part['colon'] else ''}"


LANGUAGES = {"bash": curl, "python": python, "javascript": javascript, "php": php}
"""The function that writes a sample, by the language of its code block."""


def literal(value: Any) -> str:
    """Return a JSON value as a Python literal, within the arguments of a call."""
    text = json.dumps(value, indent=4, ensure_ascii=False)
    return NAMES.sub(lambda found: NAMED[found[0]], text).replace("\n", "\n    ")
