"""A command where no database is: it says which one was meant, and creates none."""

import pytest
from testing.process import command, tell

CREATE = ("--name", "Oops", "--admin-name", "Ana", "--admin-email", "ana@north.example")


@pytest.mark.parametrize(
    "words",
    [
        ("account", "list"),
        ("account", "show", 1),
        ("account", "create", *CREATE),
        ("api", "on", 1),
        ("user", "list", 1),
        ("key", "list", 1),
        ("audit", "list", 1),
        ("requests", "list", 1),
        ("payment", "remove", 1),
        ("pdf", "invoice", 1),
        ("export", 1, "files"),
        ("monitor", "--once"),
        ("monitor", "--pause"),
        ("deliver", "--once"),
        ("backup", "b"),
        ("copy", "--to", "sqlite:///copied.db"),
    ],
    ids=lambda words: " ".join(map(str, words[:2])),
)
@pytest.mark.parametrize("is_empty", [False, True], ids=["no file", "an empty file"])
def test_a_command_in_a_wrong_folder_is_refused_and_creates_nothing(tmp_path, words, is_empty):
    if is_empty:
        (tmp_path / "data").mkdir(mode=0o700)
        (tmp_path / "data" / "retainer.db").touch()
    before = sorted(tmp_path.rglob("*"))
    result = command(tmp_path, *words)
    assert (result.status, result.out) == (1, ""), result
    assert str(tmp_path / "data" / "retainer.db") in result.err
    assert "Traceback" not in result.err
    assert sorted(tmp_path.rglob("*")) == before


def test_the_refusal_says_how_to_name_another_database_and_how_to_create_one(tmp_path):
    message = command(tmp_path, "account", "list").err
    for words in ("folder of your .env", "RETAINER_DATA_DIR", "RETAINER_DATABASE_URL", "retainer migrate"):
        assert words in message
    tell(tmp_path, "migrate")
    assert tell(tmp_path, "account", "list") == {"accounts": []}


def test_the_doctor_says_what_it_could_not_look_at(tmp_path):
    for database in ("", "postgresql://nobody@127.0.0.1:9/none"):
        result = command(
            tmp_path, "doctor", "--json", RETAINER_DATABASE_URL=database or f"sqlite:///{tmp_path}/none.db"
        )
        assert (result.status, result.err, result.json["result"]) == (3, "", "not checked")
        looked_at = {each["check"]: each["result"] for each in result.json["checks"]}
        assert {looked_at[name] for name in ("integrity", "schema", "documents", "sums")} == {"not checked"}
        (integrity,) = (each["reason"] for each in result.json["checks"] if each["check"] == "integrity")
        assert result.json["database"] in integrity
        assert ("RETAINER_DATA_DIR" in integrity) is not bool(database)
        assert "refused. Is the server running" in integrity or not database
        reasons = {each["reason"] for each in result.json["checks"] if each["check"] in {"documents", "sums"}}
        assert len(reasons) == 1
        assert reasons.pop().endswith(", see integrity."), "it is said once"
    assert [*tmp_path.iterdir()] == []
