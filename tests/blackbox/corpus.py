"""Hostile bodies, ids and queries, generated: what a parser must refuse, and what it must at least survive."""

import codecs
import gzip
import itertools
import json

RESOURCES: dict[str, dict[str, object]] = {
    "clients": {"name": "Nobody", "payment_terms_days": 30, "hourly_rate": "1.00", "tag_ids": []},
    "external-contacts": {"client_id": 1, "last_name": "Nobody", "is_primary": False, "tag_ids": []},
    "tags": {"name": "Nobody", "color": "#000000"},
}
"""A good body of each collection; every hostile body is one of these with something wrong."""

TEXT = {"clients": "name", "external-contacts": "last_name", "tags": "name"}
WHOLE = {"clients": "payment_terms_days", "external-contacts": "client_id"}

NO_JSON = [
    *(b"", b" ", b"{", b"}", b"[", b'"', b"{,}", b'{"name"}', b'{"name":}', b'{"name" "x"}', b"{'name':'x'}"),
    *(b'{name:"x"}', b'{"name":"x",}', b'{"name":"x"}}', b'{"name":"x"}{"name":"y"}', b'{"name":"x"} x', b"nul"),
    *(b'{"name":"x" // comment\n}', b'/* */{"name":"x"}', b'{"name":"x"}\x00', b"\x00", b'{"name":"x\ny"}'),
    *(b'{"name":"\x00"}', b'{"name":"\x1f"}', b'{"name":"\\x41"}', b'{"name":"\\u12"}', b'{"name":"\\ud8"}'),
    *(b'\xa0{"name":"x"}', b'\x0b{"name":"x"}', b'{"name":"x"', b'{"name":"x', b"name=x&color=y", b"<name>x</name>"),
    *(b'{"name":"\xff"}', b'{"name":"\xc0\xaf"}', b'{"name":"\xed\xa0\x80"}', b'{"name":"\xf4\x90\x80\x80"}'),
    *(b'{"n\xe9":1}', b'{"name":"\xe9"}', b"\xff\xfe\x00\x00", b"\x80", b"NaN", b"-", b"+1", b"01", b"1.", b".5"),
    codecs.BOM_UTF8 + b'{"name":"x"}',
    *('{"name":"x"}'.encode(encoding) for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7")[:4]),
    gzip.compress(b'{"name":"x"}'),
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"[" * 100_000 + b"]" * 100_000,
    b'{"name":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b'{"name":' + b"[" * 40 + b"]" * 40 + b"}",
]
NO_OBJECT = [b"null", b"true", b"5", b'"x"', b"[]", b'[{"name":"x"}]', b"1e400", b"-0", b"9" * 5000]

LITERALS = ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e99999999", "9" * 5000, "-" + "9" * 5000]
LITERALS += ["0." + "1" * 5000, "1" + "0" * 400, "[]", "{}", "[[]]", '{"$gt":""}', "true", "false"]
NO_TEXT = [*LITERALS, "5", "1.0", '""', '"   "', r'"\u0000"', r'"a\u0000b"', r'"\ud800"', r'"\udc00x"', r'"\ud83d"']
NO_TEXT += ['"' + "x" * 1_000_000 + '"', '"' + "ä" * 400_000 + '"', '"' + r"\u0041" * 150_000 + '"', "null"]
NO_WHOLE = [*(literal for literal in LITERALS if literal != "false"), "false", "1.5", '"5"', '"x"', "[1]"]
NO_WHOLE += [str(2**53), str(2**53 + 1), str(2**63), str(2**64), str(-(2**63) - 1), "-1", "1e30"]
NO_MONEY = [*LITERALS, '"abc"', "1.234", '"1.234"', '"1e3"', '"1_000"', '"NaN"', '"١٢"', '"0x10"', '"1,00"', "1e30"]
NO_IDS = ["5", '"1"', "[true]", '["1"]', "[1.5]", "[null]", "[[1]]", "[0]", "[-1]", "[9007199254740993]", "[{}]"]
NO_IDS += [
    "[" + ",".join(["1"] * 100_000) + "]",
    "[999999999]",
    "[" + "9" * 5000 + "]",
    "[NaN]",
    "[18446744073709551616]",
]
NO_FLAG = ["0", "1", '"true"', '"yes"', "[]", "{}", "1.0", "NaN"]

NO_MEMBERS = [
    '"name":"y","name":"z"',
    r'"n":1,"n":1',
    r'"x":{"a":1,"a":2}',
    r'"\ud800":1',
    r'"\udfff\ud800":"x"',
    r'"\u0000":1',
    '"":1',
    '"__proto__":{"a":1}',
    '"__class__":1',
    '"id ":1',
    '"NAME":"x"',
    r'"nam\u0065":"a","name":"b"',
    '"' + "k" * 1_000_000 + '":1',
    '"é":1,"e\u0301":2',
]
SURVIVED = ["-0", "1.0", "0.1e1", "1E+0"]


def member(collection: str, name: str, literal: str) -> bytes:
    """The good body of a collection with one member written as this literal."""
    others = {key: value for key, value in RESOURCES[collection].items() if key != name}
    return f"{json.dumps(others)[:-1]}, {json.dumps(name)}: {literal}}}".encode()


def refused_bodies(collection: str) -> list[bytes]:
    """Bodies that no operation of a collection may take."""
    good = json.dumps(RESOURCES[collection])[:-1]
    found = [*NO_JSON, *NO_OBJECT]
    found += [member(collection, TEXT[collection], literal) for literal in NO_TEXT]
    if collection in WHOLE:
        found += [member(collection, WHOLE[collection], literal) for literal in NO_WHOLE]
        found += [member(collection, "tag_ids", literal) for literal in NO_IDS]
    if collection == "clients":
        found += [member(collection, "hourly_rate", literal) for literal in NO_MONEY]
    if collection == "external-contacts":
        found += [member(collection, "is_primary", literal) for literal in NO_FLAG]
    found += [f"{good}, {more}}}".encode() for more in NO_MEMBERS]
    return found


def many_members(count: int, *, twice: bool) -> bytes:
    """A body with so many unknown members; the last of them twice, if so said."""
    names = [f'"k{number}":1' for number in range(count)]
    return ("{" + ",".join(names + names[-1:] * twice) + "}").encode()


def hostile_ids(real: int) -> list[str]:
    """Path segments that name no record, though some look like a real id."""
    near = [
        "+{}",
        "0{}",
        "{}.0",
        "{}e0",
        "%20{}",
        "{}%20",
        "{}%00",
        "{}%0a",
        "{};x",
        "{},{}",
        "{}%2F",
        "-{}",
        "{}_0",
        "{}x",
    ]
    found = [form.replace("{}", str(real)) for form in near]
    found += [
        "0",
        "-1",
        "+1",
        "01",
        "1e3",
        "1_000",
        "%D9%A3",
        "%EF%BC%91",
        "%00",
        "null",
        "undefined",
        "NaN",
        "true",
        "*",
    ]
    found += [str(2**53), str(2**53 + 1), str(2**63 - 1), str(2**63), str(2**64), "9" * 400, "-" + "9" * 400, "me"]
    found += [
        "..",
        ".",
        "%2e%2e",
        "%2e%2e%2fme",
        "%ff",
        "%ED%A0%80",
        "%C0%AF",
        "%zz",
        "%",
        "%u0031",
        "%25",
        "%5c",
        "%20",
    ]
    return [
        *found,
        "'",
        "1'%20OR%20'1'='1",
        "1;DROP%20TABLE%20clients",
        "{id}",
        "%7Bclient%7D",
        "$ne",
        "[1]",
        "1%3F",
        "1%23",
    ]


BAD_QUERIES = [
    *("page=0", "page=-1", "page=1.0", "page=x", "page=", "page=%2B1", "page=1e3", "page=%D9%A3", "page=1_0"),
    *(f"page={10**20}", "page=" + "9" * 5000, "page=1&page=2", "page=1&page=1", "page[]=1", "page=%00", "page=1%00"),
    *(
        "per_page=0",
        "per_page=101",
        f"per_page={10**9}",
        "per_page=-1",
        "per_page=x",
        "per_page=",
        "per_page=1&per_page=2",
    ),
    *(
        "sort=nope",
        "sort=-",
        "sort=--name",
        "sort=name;drop",
        "sort=name%00",
        "sort=1",
        "sort=name%20desc",
        "sort=account_id",
    ),
    *(
        "ids=x",
        "ids=0",
        "ids=-1",
        "ids=1.0",
        "ids=1,,2",
        f"ids={2**53}",
        f"ids={2**64}",
        "ids=" + ",".join(["1"] * 101),
    ),
    *("q=%00", "q=a%00b", "q=%ff", "q=%ED%A0%80", "q=%C0%AF", "q=" + "x" * 192, "q=" + "x" * 30000),
    *("created_since=x", "created_since=2026-01-01", "created_since=2026-02-30T00:00:00Z", "updated_before=now"),
    *(
        "created_since=2026-01-01T00:00:00",
        "created_since=2026-01-01T00:00:00%2B99:99",
        "updated_since=2026-13-01T00:00:00Z",
    ),
    *(
        "created_before=0000-01-01T00:00:00Z",
        "created_before=10000-01-01T00:00:00Z",
        "created_before=0001-01-01T00:00:00%2B23:59",
    ),
    *("nope=1", "__class__=1", "%00=1", "%ff=1", "=1", "Page=1", "name__like=x", "created_at=1", "account_id=1"),
    "&".join(f"p{number}=1" for number in range(1000)),
    "&".join("q=1" for _ in range(1000)),
    "&".join(itertools.repeat("page=1", 150)),
]
GOOD_QUERIES = [
    "",
    "&&&",
    f"page={10**9}",
    f"page={2**53 - 1}",
    "per_page=100",
    "q=%25",
    "q=_",
    "q='%22--;",
    "q=%F0%9F%92%A9",
]
GOOD_QUERIES += [
    "q=" + "%25" * 190,
    "sort=-id",
    "ids=1,2,3",
    "created_before=9999-12-31T23:59:59Z",
    "q=%5C",
    "q=/",
    "q=%2F%25",
]

TYPED = [
    *(
        "%00",
        "a%00b",
        "%01",
        "%7F",
        "%0A",
        "%0D%0A",
        "%20",
        "%ff",
        "%ED%A0%80",
        "%C0%AF",
        "%zz",
        "%",
        "%25",
        "%5C",
        "_",
    ),
    *("%F0%9F%92%A9", "e%CC%81", "%E2%80%AE", "%EF%BB%BF", "%D9%A3", "%D9%A3" * 30, "%EF%BC%91", "%C2%B2"),
    *("9" * 30, "9" * 18, "9" * 5000, "-1", "-" + "9" * 30, "0", "1e400", "NaN", "Infinity", "true", "null", "1.5"),
    *(str(2**31), str(2**53), str(2**63 - 1), str(2**63), str(2**64)),
    *("0000-00-00", "0001-01-01", "9999-12-31", "2026-02-30", "2026-W01-1", "10000-01-01"),
    *("0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59", f"2026-01-01T00:00:00.000000Z.{'9' * 18}"),
    *(f"2026-01-01T00:00:00.000000Z,{'9' * 30}", "2026-01-01T00:00:00.000000Z,%D9%A3", ",", "x" * 30000),
    *("'--", "%22%3E%3Cscript%3E", "../../etc/passwd", "//evil.example", "{{7*7}}", "%24%7B7*7%7D", "rtn_" + "a" * 38),
]
"""What somebody types into a field, or writes into an address, encoded as browsers do or as none does."""
