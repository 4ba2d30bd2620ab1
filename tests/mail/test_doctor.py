"""The doctor of mail: the records of the sender's domain, and a test message that arrives or says why not."""

import pytest
from dns.exception import Timeout
from testing.process import command

from retainer.doctor.mail import examine_mail, find_dmarc
from retainer.doctor.spf import find_spf
from retainer.mail.sender.relay import Relay
from tests.mail.server import MailServer

GOOD = {
    "mail.agency.example": ["google-site-verification=x", "v=spf1 mx -all"],
    "_dmarc.agency.example": ["v=DMARC1; p=reject"],
}


@pytest.fixture
def server():
    made = MailServer()
    yield made
    made.close()


def found(server, records, recipient="me@x.example"):
    relay = Relay.of(server.url, "invoices@mail.agency.example")
    outcomes = examine_mail(relay, recipient, lambda name: records.get(name, []))
    return {each.check: [finding.what for finding in each.found] for each in outcomes}


def test_a_domain_with_its_records_is_sound_and_the_test_message_arrives(server):
    assert found(server, GOOD, "me@müller.example") == {"spf": [], "dmarc": [], "mail": []}
    (got,) = server.got
    assert got.recipient == "me@xn--mller-kva.example"
    assert "dkim=pass" in got.message.get_content()


def test_the_dmarc_record_of_any_domain_above_counts_but_none_of_a_registry(server):
    for domain, name in (("mail.agency.co.uk", "agency.co.uk"), ("a.b.agency.example", "agency.example")):
        asked = []

        def ask(asked_name, name=name, asked=asked):
            asked.append(asked_name)
            return ["v=DMARC1; p=none"] if asked_name == f"_dmarc.{name}" else []

        assert find_dmarc(domain, ask) == []
        assert asked[-1] == f"_dmarc.{name}"
    assert "has no DMARC record" in find_dmarc("mail.agency.co.uk", lambda name: GOOD.get(name, []))[0]
    asked = []
    find_dmarc("agency.example", lambda name: asked.append(name) or [])
    assert asked == ["_dmarc.agency.example"]


@pytest.mark.parametrize(
    ("records", "check", "sentence"),
    [
        ({}, "spf", "has no SPF record"),
        ({"mail.agency.example": ["v=spf1 mx -all", "v=spf1 a -all"]}, "spf", "has 2 SPF records"),
        ({"mail.agency.example": ["v=spf1 +all"]}, "spf", "ends with +all"),
        ({"mail.agency.example": ["v=spf1 mx"]}, "spf", "End it with -all or ~all"),
        ({"mail.agency.example": ["v=spf1 ip4=192.0.2.1 -all"]}, "spf", "because of a mistake: ip4=192.0.2.1"),
        ({"mail.agency.example": ["v=spf1 ip4:192.0.2.300 -all"]}, "spf", "because of a mistake: ip4:192.0.2.300"),
        ({"mail.agency.example": ["v=spf1 ip4:2001:db8::1 -all"]}, "spf", "because of a mistake: ip4:2001"),
        (
            {"mail.agency.example": ["v=spf1 includ:spf.example -all"]},
            "spf",
            "because of a mistake: includ:spf.example",
        ),
        ({"mail.agency.example": ["v=spf1 include:gone.example -all"]}, "spf", "names gone.example, which has no SPF"),
        ({"mail.agency.example": ["v=spf1 redirect=gone.example"]}, "spf", "names gone.example, which has no SPF"),
        ({"mail.agency.example": ["v=spf1 redirect=open.example"]}, "spf", "ends with +all"),
        ({"mail.agency.example": ["v=spf1 include:mail.agency.example -all"]}, "spf", "more than 10 queries"),
        (
            {"mail.agency.example": [f"v=spf1 {' '.join(f'a:{n}.example' for n in range(11))} -all"]},
            "spf",
            "more than 10",
        ),
        ({"mail.agency.example": ["v=spf1 include:two.example -all"]}, "spf", "two.example has 2 SPF records"),
        ({"_dmarc.agency.example": []}, "dmarc", "has no DMARC record"),
        ({"_dmarc.agency.example": ["v=DMARC1; p=none", "v=DMARC1; p=reject"]}, "dmarc", "agency.example has 2 DMARC"),
        (
            {"_dmarc.agency.example": ["v=DMARC1; rua=mailto:a@x.example"]},
            "dmarc",
            "does not say what servers should do",
        ),
    ],
)
def test_a_record_that_is_missing_or_wrong_is_named_with_what_to_do(server, records, check, sentence):
    others = {"open.example": ["v=spf1 +all"], "two.example": ["v=spf1 -all", "v=spf1 ~all"]}
    assert sentence in found(server, others | (GOOD if records else {}) | records)[check][0]


@pytest.mark.parametrize(
    "record",
    [
        "v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 a:mail.x.example/28 ptr exp=why.%{d} ~all",
        "V=SPF1  include:%{i}._spf.x.example MX/24 -ALL",
        "v=spf1 a mx exists:%{i}.x.example redirect=spf.x.example",
        f"v=spf1 include:spf.x.example {' '.join(f'a:{n}.example' for n in range(8))} -all",
    ],
)
def test_a_record_that_servers_accept_is_sound_with_what_it_includes(record):
    records = {"x.example": [record], "spf.x.example": ["v=spf1 a ip4:192.0.2.1 -all include:unread.example"]}
    assert find_spf("x.example", records.__getitem__) == []


def test_a_refused_test_message_says_what_the_server_said(server):
    server.answer = lambda step, _: "550 no such user" if step == "rcpt" else None
    assert found(server, GOOD)["mail"] == ["The mail server refuses this address: 550 no such user"]


def test_name_servers_that_do_not_answer_are_no_finding(server):
    def ask(_):
        raise Timeout

    spf, dmarc, mail = examine_mail(Relay.of(server.url, "me@x.example"), "me@x.example", ask)
    assert (spf.result, dmarc.result, mail.result) == ("not checked", "not checked", "ok")


def test_the_command_needs_a_mail_server_and_an_address(tmp_path, server):
    missing = command(tmp_path, "doctor", "--mail", "me@x.example")
    assert "Set RETAINER_SMTP_URL" in missing.err
    settings = {"RETAINER_SMTP_URL": server.url, "RETAINER_MAIL_FROM": "me@x.invalid"}
    assert "email address" in command(tmp_path, "doctor", "--mail", "nobody", **settings).err
    told = command(tmp_path, "doctor", "--mail", "me@x.example", "--json", **settings)
    checks = {each["check"]: each["result"] for each in told.json["checks"]}
    assert checks["mail"] == "ok"
    assert [got.recipient for got in server.got] == ["me@x.example"]
