"""No secret gets into an archive, however it is spelled in what goes into it."""

from __future__ import annotations

import base64
import html
import io
import json
import re
import shlex
import unicodedata
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.config import Config
from lockstep.config.load import from_mapping
from lockstep.support.archive import MANIFEST, Archive
from lockstep.support.collect import collect
from lockstep.support.parts import Part, log_parts, parts
from lockstep.support.redaction import Redactor, Secrets, redacted, secrets_of, spellings
from lockstep.ui.access import Access

PEM = "-----BEGIN KEY-----\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASC\nBKgwggSkAgEAAoIBAQC7VJTUt9Us8cKj\n-----END"
ENVIRONMENT = {
    "KAFKA_PASSWORD": 'env "quoted" \\ päss',
    "LAKE_KEY": "AKIA0123456789",
    "PART": "only-a-part",
    "AWS_SECRET_ACCESS_KEY": "the-environments-own",
    "HOME": "/root",
}
FILE_SECRET = "of-a-file/+=%"
JAAS = 'org.apache.PlainLoginModule required username="u" password="inside-of-jaas";'
LITERALS = {
    "ssl.keystore.password": "literal-keystore",
    "ssl.key.pem": PEM,
    "sasl.oauthbearer.config": "principal=x secret=inside-of-oauth",
}
HUDI = {"hoodie.embed.password": "literal-of-hudi"}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "secret").write_text(FILE_SECRET + "\n", encoding="utf-8")
    kafka = {
        **LITERALS,
        "sasl.username": "alice-of-kafka",
        "sasl.password": "${env:KAFKA_PASSWORD}",
        "client.id": "host-${env:PART}-x",
        "ssl.key.password": f"${{file:{tmp_path}/secret}}",
        "ssl.truststore.password": "${env:NOT_THERE}",
        "sasl.oauthbearer.token.endpoint.url": "https://bob:of-an-address@idp.example.org/token",
    }
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "127.0.0.1:1", "topics": ["events"], "kafka": kafka},
            "record": {"schema": "id STRING"},
            "table": {"path": "s3a://lake/events", "name": "events"},
            "storage": {
                "credentials": "keys",
                "access_key": "${env:LAKE_KEY}",
                "secret_key": f"${{file:{tmp_path}/secret}}",
            },
        }
    )


SECRET = (
    *(value for name, value in ENVIRONMENT.items() if name != "HOME"),
    *("literal-keystore", "inside-of-oauth", "of-an-address", "of-the-run", FILE_SECRET),
    *(line for line in PEM.splitlines() if len(line) > 20),
)


def spelled(secret: str) -> list[str]:
    """By code that the product does not share."""
    user = base64.b64encode(f"alice-of-kafka:{secret}".encode()).decode()
    return [
        secret,
        json.dumps({"a": secret}),
        json.dumps(json.dumps(secret)),
        f"https://h/?token={quote(secret)}&b={quote_plus(secret)}",
        base64.b64encode(secret.encode()).decode(),
        f"Authorization: Basic {user}",
        repr(secret),
        f"https://someone:{quote(secret, safe='')}@host/",
    ]


def everything(secrets: tuple[str, ...]) -> str:
    return "\n".join(one for secret in secrets for one in spelled(secret))


def unpacked(raw: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        return {name: file.read(name).decode("utf-8", "surrogateescape") for name in file.namelist()}


def archived(config: Config, at_once: list[Part], logs: tuple[Path, ...] = ()) -> dict[str, str]:
    secrets = secrets_of(config, ENVIRONMENT, more=["of-the-run"])
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as file:
        archive = Archive(file, Redactor(secrets))
        collect(archive, at_once, log_parts(logs), secrets)
        archive.finish("a heading")
    return unpacked(raw.getvalue())


def assert_clean(members: Mapping[str, str]) -> None:
    for name, text in members.items():
        for secret in SECRET:
            for one in (secret, *spelled(secret)[4:5], quote_plus(secret), json.dumps(secret)[1:-1]):
                assert one not in text, (name, secret)


def test_no_secret_of_any_kind_is_in_any_member(config: Config, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"a line\n{everything(SECRET)}\nthe last line\n", encoding="utf-8")
    own = [part for part in parts(config) if part.title == "the configuration"]
    hostile = Part(
        title="hostile",
        names={"hostile.txt": everything(SECRET)},
        within_s=30,
        gather=lambda found: found.problems.append(everything(SECRET)),
    )
    members = archived(config, [*own, hostile], (log,))
    assert set(members) == {"configuration.json", "logs/1-run.log", MANIFEST}
    assert_clean(members)
    assert members["logs/1-run.log"].startswith("a line\n") and "the last line" in members["logs/1-run.log"]
    assert "NOT_THERE is not set" in members[MANIFEST] and "was not looked for" in members[MANIFEST]


def test_the_configuration_shows_references_and_hides_literals(config: Config) -> None:
    shown = redacted(config)
    kafka = shown["source"]["kafka"]
    assert kafka["sasl.password"] == "${env:KAFKA_PASSWORD}" and kafka["sasl.username"] == "alice-of-kafka"
    assert {kafka[name] for name in LITERALS} == {"***"}
    assert shown["storage"]["credentials"] == "keys" and shown["storage"]["access_key"] == "${env:LAKE_KEY}"


def test_what_says_of_what_kind_secrets_are_is_none_itself(config: Config) -> None:
    assert "keys" not in secrets_of(config, ENVIRONMENT).values
    assert "/root" not in secrets_of(config, ENVIRONMENT).values


def test_secrets_within_a_property_of_several_parts_are_secrets(config: Config) -> None:
    found = secrets_of(
        config.model_copy(
            update={"source": config.source.model_copy(update={"kafka": {"sasl.jaas.config": JAAS}})}
        ),
        {**ENVIRONMENT},
    )
    assert {"inside-of-jaas", JAAS} <= found.values


def test_secrets_are_never_shown_by_accident(config: Config) -> None:
    assert "literal" not in repr(secrets_of(config, ENVIRONMENT))


def test_a_short_secret_goes_where_it_stands_alone_and_leaves_the_words() -> None:
    redact = Redactor(Secrets(values=frozenset({"ab"})))
    assert redact('password: ab, "ab" about ab') == 'password: ***, "***" about ***'


@given(st.text(min_size=4, max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_whatever_a_secret_is_no_spelling_of_it_stays(secret: str, before: str, after: str) -> None:
    redact = Redactor(Secrets(values=frozenset({secret})))
    for form in spellings(secret):
        if len(form) > 3:
            assert form not in redact(f"{before}{form}{after}") or form in "***"


ODD = "p/a=s&s\"w\u00f6r'd<7> \\x:%y"
"""All that anything escapes, and no three letters in a row."""
JSON_OF_IT = json.dumps(ODD)[1:-1]
PERCENT = quote(ODD, safe="")
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"}

SPELLINGS = {
    "as it is": ODD,
    "JSON": JSON_OF_IT,
    "JSON with \\/": JSON_OF_IT.replace("/", "\\/"),
    "JSON for HTML": "".join(f"\\u{ord(one):04x}" if one in "=&'<>" else one for one in JSON_OF_IT),
    "JSON in capitals": JSON_OF_IT.replace("00f6", "00F6"),
    "JSON in JSON in JSON": json.dumps(json.dumps(json.dumps(ODD))),
    "JSON, each character": "".join(f"\\u{ord(one):04x}" for one in ODD),
    "an address": PERCENT,
    "an address, small": re.sub("%..", lambda found: found.group().lower(), PERCENT),
    "an address in an address": quote(PERCENT, safe=""),
    "an address, each byte": "".join(f"%{one:02x}" for one in ODD.encode()),
    "a form": quote_plus(ODD),
    "HTML": "".join(ENTITIES.get(one, one) for one in ODD),
    "HTML of Python's": html.escape(ODD),
    "HTML twice": html.escape(html.escape(ODD)),
    "HTML, hexadecimal": "".join(f"&#x{ord(one):X};" for one in ODD),
    "a shell": shlex.quote(ODD)[1:-1],
    "a shell, other": ODD.replace("'", "'\\''"),
    "bytes": repr(ODD.encode())[2:-1],
    "octal": "".join(chr(one) if one < 128 else f"\\{one:03o}" for one in ODD.encode()),
    "hexadecimal": ODD.encode().hex(),
    "hexadecimal, capitals": ODD.encode().hex().upper(),
    "Latin-1": ODD.encode("latin-1").decode("utf-8", "surrogateescape"),
    "UTF-8 as Latin-1": ODD.encode().decode("latin-1"),
    "accents apart": unicodedata.normalize("NFD", ODD),
    "properties": re.sub(r"([\\:=#! ])", r"\\\1", ODD).replace("\u00f6", "\\u00F6"),
    "CSV": ODD.replace('"', '""'),
    "base64": base64.b64encode(ODD.encode()).decode(),
    "base64 of a user's": base64.b64encode(f"bob:{ODD}".encode()).decode(),
    "base64 of another's": base64.b64encode(f"alice:{ODD}:".encode()).decode(),
    "base64 of a line": base64.b64encode(f'x password="{ODD}";'.encode()).decode(),
    "base64 in JSON": base64.b64encode(f'x password="{ODD}";'.encode()).decode().replace("/", "\\/"),
    "base64 for addresses": base64.urlsafe_b64encode(f'x password="{ODD}";'.encode()).decode(),
}


@pytest.mark.parametrize("by", SPELLINGS)
def test_a_secret_goes_however_it_is_spelled(by: str) -> None:
    redact = Redactor(Secrets(values=frozenset({ODD, f"{ODD}-and-letters"})))
    shown = redact(f"before {SPELLINGS[by]} behind")
    rest = re.fullmatch(r'before ("?\S*?)\*\*\*(\S*?) behind', shown)
    assert rest is not None, shown
    assert "base64" in by or set(rest[1] + rest[2]) <= set("\\\"'"), shown
    assert len(rest[1]) <= 24 and len(rest[2]) <= 8, shown


def test_a_word_goes_though_each_of_its_letters_is_escaped() -> None:
    redact = Redactor(Secrets(values=frozenset({"hunter2-long"})))
    lines = ["", "none %20 here", "".join(f"%{ord(one):x}" for one in "hunter2-long"), "&#104;unter2-long"]
    assert redact("\n".join([*lines, "\\\\u0068unter2-long", "end"])).split("\n") == [
        *("", "none %20 here", "***", "***", "***", "end")
    ]


def test_a_secret_that_is_long_goes_as_a_whole() -> None:
    token = "".join(sha256(bytes([number])).hexdigest() for number in range(20))
    redact = Redactor(Secrets(values=frozenset({token})))
    assert set(redact(f"{token} {token.encode().hex()} {quote(token)}")) == {"*", " "}


@pytest.mark.parametrize("text", ["\\" * 100_000, "%25" * 50_000, "&amp;" * 30_000, "a\\" * 50_000])
def test_what_looks_like_the_start_of_one_for_long_costs_no_time(text: str) -> None:
    redact = Redactor(Secrets(values=frozenset({"\\\\a\\%&", "&&&&%%%%"})))
    assert redact(text) == text


def test_of_two_secrets_the_longer_goes_as_a_whole() -> None:
    redact = Redactor(Secrets(values=frozenset({"hunter", "hunter2-long"})))
    assert redact("hunter2-long hunter") == "*** ***"


def test_bytes_that_are_no_text_stay_as_they_are(config: Config, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(b"\xff\xfe literal-keystore \x80\n")
    members = archived(config, [], (log,))
    assert members["logs/1-run.log"].encode("utf-8", "surrogateescape") == b"\xff\xfe *** \x80\n"


def test_what_the_hooks_send_and_where_to_is_secret() -> None:
    hooks = {
        "webhook": "https://hooks.example.com/services/T000/B000/0123456789abcdefgh?to=me-and-others",
        "webhook_headers": {"X-Signing": "of-a-header", "X-Two": "Bearer ${env:PART}"},
        "openlineage": "https://ol.example.com/api?key=of-a-query",
    }
    redact = Redactor(secrets_of(with_more(hooks=hooks), ENVIRONMENT))
    shown = redact(
        "webhook https://hooks.example.com/services/T000/B000/0123456789abcdefgh?to=me-and-others says 500; "
        "POST /services/T000/B000/0123456789abcdefgh; 0123456789abcdefgh; of-a-header; only-a-part; "
        "me-and-others; https://ol.example.com/api?key=of-a-query; key=of-a-query; of-a-query"
    )
    assert shown == (
        "webhook https://hooks.example.com*** says 500; POST ***; ***; ***; ***; ***; "
        "https://ol.example.com***; ***; ***"
    )


def test_an_address_that_holds_no_more_than_a_host_or_a_file_hides_nothing() -> None:
    hooks = {"webhook": "https://hooks.example.com/", "openlineage": "file:///var/log/lineage.json"}
    assert not secrets_of(with_more(hooks=hooks), {}).values


def test_a_token_that_stands_for_a_user_of_an_address_is_secret_and_a_container_is_none() -> None:
    kafka = {"sasl.oauthbearer.token.endpoint.url": "https://lonely-token@idp.example.org/token"}
    redact = Redactor(secrets_of(with_more(source=kafka), {}))
    assert redact("lonely-token, https://of-somebody@host, abfss://lake@account") == (
        "***, https://***@host, abfss://lake@account"
    )


def test_the_cookie_of_the_page_is_secret() -> None:
    token = "0123456789-of-the-page"
    found = secrets_of(with_more(ui={"token": "${env:UI}"}), {"UI": token}).values
    assert {token, Access(bind="127.0.0.1", token=token).ticket()} == found
    assert secrets_of(with_more(ui={"token": "${env:UI}"}), {"UI": "short"}).values == {"short"}


def with_more(*, source: Mapping[str, str] | None = None, **sections: Mapping[str, Any]) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "127.0.0.1:1", "topics": ["events"], "kafka": source or {}},
            "record": {"schema": "id STRING"},
            "table": {"path": "file:///tmp/x", "name": "events"},
            **sections,
        }
    )
