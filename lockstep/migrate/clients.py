"""Properties of Kafka's Java clients as librdkafka, or Lockstep, has them. Pure.

Source of the names: Kafka's ConsumerConfig, SaslConfigs and SslConfigs; librdkafka's CONFIGURATION.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from lockstep.config.properties import KAFKA_OWNED
from lockstep.migrate.sheet import Sheet

Rename = Callable[[str], str]

SAME_NAME = (
    *("security.protocol", "sasl.kerberos.service.name", "client.id", "client.rack", "check.crcs"),
    *("sasl.oauthbearer.scope", "sasl.oauthbearer.token.endpoint.url", "enable.metrics.push"),
)
RANGES: Mapping[str, tuple[int, int]] = {
    "fetch.min.bytes": (1, 100_000_000),
    "fetch.wait.max.ms": (0, 299_000),
    "session.timeout.ms": (1, 3_600_000),
    "heartbeat.interval.ms": (1, 3_600_000),
    "max.poll.interval.ms": (1, 86_400_000),
    "metadata.max.age.ms": (1, 86_400_000),
    "reconnect.backoff.ms": (0, 3_600_000),
    "reconnect.backoff.max.ms": (0, 3_600_000),
    "retry.backoff.ms": (1, 300_000),
    "retry.backoff.max.ms": (1, 300_000),
    "connections.max.idle.ms": (0, 2_147_483_647),
    "socket.connection.setup.timeout.ms": (1_000, 2_147_483_647),
    "socket.timeout.ms": (10, 300_000),
    "socket.send.buffer.bytes": (0, 100_000_000),
    "socket.receive.buffer.bytes": (0, 100_000_000),
}
"""librdkafka's numbers, by its names, and the smallest and greatest that it takes: its CONFIGURATION.md."""
UNLIMITED: Mapping[str, str] = {
    "connections.max.idle.ms": "0",
    "socket.send.buffer.bytes": "0",
    "socket.receive.buffer.bytes": "0",
}
"""librdkafka's values for the Java client's -1: no limit, or the system's default."""
MECHANISMS = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"})
LOOKUPS = frozenset({"use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"})
RENAMED: Mapping[str, str] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}
_NOT_HERE = "of the Java client's own working"
NO_EQUAL: Mapping[str, str] = {
    "max.poll.records": "records are taken in batches of bytes: memory.per_worker bounds them",
    "fetch.max.bytes": "memory.per_worker says how much is fetched",
    "max.partition.fetch.bytes": "memory.per_worker says how much is fetched",
    "ssl.cipher.suites": "OpenSSL has other names for them: set source.kafka.ssl.cipher.suites with those",
    "default.api.timeout.ms": "every question has a deadline of its own",
    "auto.commit.interval.ms": KAFKA_OWNED["enable.auto.commit"],
    "interceptor.classes": "no Java class is loaded",
    "metric.reporters": "metrics are in docs/metrics.md",
    "metrics.num.samples": _NOT_HERE,
    "metrics.sample.window.ms": _NOT_HERE,
    "metrics.recording.level": _NOT_HERE,
    "auto.include.jmx.reporter": _NOT_HERE,
    "exclude.internal.topics": "topics are named one by one",
    "key.deserializer": "record.key_format says how keys are read",
    "value.deserializer": "record.format says how values are read",
    "socket.connection.setup.timeout.max.ms": _NOT_HERE,
    "ssl.protocol": "OpenSSL agrees on the newest protocol that both have",
    "ssl.enabled.protocols": "OpenSSL agrees on the newest protocol that both have",
    "ssl.provider": _NOT_HERE,
    "ssl.engine.factory.class": "no Java class is loaded",
    "ssl.keymanager.algorithm": _NOT_HERE,
    "ssl.trustmanager.algorithm": _NOT_HERE,
    "ssl.secure.random.implementation": _NOT_HERE,
    "security.providers": "no Java class is loaded",
    "sasl.client.callback.handler.class": "no Java class is loaded",
    "sasl.login.callback.handler.class": "no Java class is loaded",
    "sasl.login.class": "no Java class is loaded",
    "sasl.login.refresh.*": _NOT_HERE,
    "sasl.login.retry.*": _NOT_HERE,
    "sasl.kerberos.kinit.cmd": "librdkafka's own default runs kinit: set sasl.kerberos.keytab and .principal",
    "sasl.kerberos.ticket.*": "librdkafka renews by sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.min.time.before.relogin": "librdkafka has one of its own, with another meaning",
}

_JAAS = re.compile(r"([\w.]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s;]+))")
_STRIMZI = {
    "oauth.client.id": "clientId",
    "oauth.client.secret": "clientSecret",
    "oauth.token.endpoint.uri": "endpoint",
    "oauth.scope": "scope",
}
_OAUTH = frozenset({"clientId", "clientSecret", "endpoint", "scope"})
_EXTENSION = "extension_"
_LOOKUP = "client.dns.lookup"
_STORES = "librdkafka reads PEM or PKCS#12"


def translate_client(sheet: Sheet, name: str, bare: str) -> bool:
    """Say what becomes of a consumer's property, `bare` by Kafka's own name. False where it is unknown."""
    own = _OWN.get(bare)
    if own is not None:
        own(sheet, name)
    elif bare in KAFKA_OWNED:
        sheet.none(name, KAFKA_OWNED[bare])
    elif bare in SAME_NAME:
        sheet.same(name, f"source.kafka.{bare}")
    elif RENAMED.get(bare, bare) in RANGES:
        _number(sheet, name, RENAMED.get(bare, bare), "librdkafka's name for it" * (bare in RENAMED))
    elif why := NO_EQUAL.get(bare) or next(
        (why for one, why in NO_EQUAL.items() if one.endswith("*") and bare.startswith(one[:-1])), ""
    ):
        sheet.none(name, why)
    else:
        return False
    return True


def _bootstrap(sheet: Sheet, name: str) -> None:
    sheet.same(name, "source.bootstrap_servers")


def _reset(sheet: Sheet, name: str) -> None:
    value = sheet.get(name).lower()
    if value in ("earliest", "latest"):
        sheet.same(name, "source.starting_offsets", value, "only where the table has no offset yet")
    else:
        sheet.none(name, f"{value} is none of source.starting_offsets: earliest, latest")


def _isolation(sheet: Sheet, name: str) -> None:
    if sheet.get(name).lower() == "read_committed":
        sheet.same(name, why="only committed records are read, always")
    else:
        sheet.none(name, "only committed records are read: what producers aborted is never a row")


def _group(sheet: Sheet, name: str) -> None:
    sheet.none(
        name, "the group is named by pipeline.id; --adopt-offsets takes over what theirs has committed"
    )


def _identification(sheet: Sheet, name: str) -> None:
    value = sheet.get(name) or "none"
    sheet.same(name, "source.kafka.ssl.endpoint.identification.algorithm", value)


def _number(sheet: Sheet, name: str, ours: str, why: str) -> None:
    """Take over a number, within what librdkafka takes."""
    value = int(sheet.get(name))
    low, high = RANGES[ours]
    if value == -1 and ours in UNLIMITED:
        sheet.same(name, f"source.kafka.{ours}", UNLIMITED[ours], "librdkafka's way to say no limit")
    elif low <= value <= high:
        sheet.same(name, f"source.kafka.{ours}", str(value), why)
    else:
        nearest = str(min(max(value, low), high))
        sheet.differs(name, f"source.kafka.{ours}", nearest, f"librdkafka takes {low:,} to {high:,}")


def _lookup(sheet: Sheet, name: str) -> None:
    if sheet.get(name) in LOOKUPS:
        sheet.same(name, f"source.kafka.{_LOOKUP}")
    else:
        sheet.none(name, "librdkafka tries all addresses of a name, which is use_all_dns_ips")


def _mechanism(sheet: Sheet, name: str) -> None:
    """Take over a mechanism that the Python client has."""
    value = sheet.get(name).upper()
    if value in MECHANISMS:
        sheet.same(name, "source.kafka.sasl.mechanism", value)
        return
    if value == "GSSAPI":
        sheet.same(name, "source.kafka.sasl.mechanism", value, (
            "confluent-kafka's wheel has no Kerberos: install it from its source"))  # fmt: skip
        return
    others = (
        "SCRAM-SHA-512 or SCRAM-SHA-256, OAUTHBEARER, PLAIN; or security.protocol = SSL with a certificate"
    )
    sheet.must("source.kafka.sasl.mechanism", f"one that librdkafka has instead of {value}: {others}")
    sheet.none(name, f"librdkafka has no mechanism {value}")


def _jaas(sheet: Sheet, name: str) -> None:
    """User and password of PLAIN and SCRAM; of OAuth the client's; of Kerberos where its key is.

    Source of the options: Kafka's OAuthBearerLoginModule and Krb5LoginModule; Strimzi's OAuth library, whose
    names begin with `oauth.`.
    """
    value = sheet.get(name)
    found = {key: quoted or single or bare for key, quoted, single, bare in _JAAS.findall(value)}
    found = {_STRIMZI.get(key, key): option for key, option in found.items()}
    if "username" in found or "password" in found:
        if found.get("username"):
            sheet.put("source.kafka.sasl.username", found["username"])
        reference = sheet.reference(name, found.get("password", ""), "KAFKA_SASL_PASSWORD")
        sheet.put("source.kafka.sasl.password", reference)
        sheet.differs(name, "source.kafka.sasl.username", found.get("username") or None,
                      f"librdkafka has no JAAS, but properties: sasl.password = {reference}")  # fmt: skip
    elif "clientId" in found or "clientSecret" in found:
        _oauth(sheet, name, found)
    elif "keyTab" in found:
        if found.get("principal"):
            sheet.put("source.kafka.sasl.kerberos.principal", found["principal"])
        sheet.differs(name, "source.kafka.sasl.kerberos.keytab", found["keyTab"],
                      "librdkafka has no JAAS: keytab and principal are properties")  # fmt: skip
    elif "IAMLoginModule" in value:
        sheet.none(name, "librdkafka has no mechanism AWS_MSK_IAM")
    else:
        sheet.must("source.kafka.sasl.username", f"who we are, which {name} says in a way that is not read")
        sheet.none(name, "librdkafka has no JAAS: say sasl.username and sasl.password in source.kafka")


def _oauth(sheet: Sheet, name: str, found: Mapping[str, str]) -> None:
    """Take over OAuth's client credentials, with scope and extensions."""
    sheet.put("source.kafka.sasl.oauthbearer.method", "oidc")
    reference = sheet.reference(name, found.get("clientSecret", ""), "KAFKA_CLIENT_SECRET")
    sheet.put("source.kafka.sasl.oauthbearer.client.secret", reference)
    if found.get("scope"):
        sheet.put("source.kafka.sasl.oauthbearer.scope", found["scope"])
    if found.get("endpoint"):
        sheet.put("source.kafka.sasl.oauthbearer.token.endpoint.url", found["endpoint"])
    else:
        sheet.must("source.kafka.sasl.oauthbearer.token.endpoint.url", "where tokens are fetched")
    extensions = [
        f"{key.removeprefix(_EXTENSION)}={one}" for key, one in found.items() if key.startswith(_EXTENSION)
    ]
    if extensions:
        sheet.put("source.kafka.sasl.oauthbearer.extensions", ",".join(extensions))
    left = sorted(found.keys() - _OAUTH - {key for key in found if key.startswith(_EXTENSION)})
    more = f"; not taken over: {', '.join(left)}" if left else ""
    sheet.differs(name, "source.kafka.sasl.oauthbearer.client.id", found.get("clientId") or None,
                  f"librdkafka has no JAAS: sasl.oauthbearer.client.secret = {reference}{more}")  # fmt: skip


def _truststore(sheet: Sheet, name: str) -> None:
    prefix = name.removesuffix("location")
    if sheet.get(f"{prefix}type", "JKS").upper() == "PEM":
        sheet.same(name, "source.kafka.ssl.ca.location")
        return
    sheet.must("source.kafka.ssl.ca.location", f"the certificates of {sheet.shown(name)}, as PEM (keytool"
               " -exportcert -rfc)")  # fmt: skip
    sheet.none(name, f"a Java store: {_STORES}, in ssl.ca.location")


def _keystore(sheet: Sheet, name: str) -> None:
    prefix = name.removesuffix("location")
    if sheet.get(f"{prefix}type", "JKS").upper() == "PKCS12":
        sheet.same(name, "source.kafka.ssl.keystore.location")
        return
    sheet.must("source.kafka.ssl.keystore.location", f"the key in {sheet.shown(name)}, as PKCS#12 (keytool"
               " -importkeystore -deststoretype PKCS12)")  # fmt: skip
    sheet.none(name, f"a Java store: {_STORES}, in ssl.keystore.location")


_OWN: Mapping[str, Callable[[Sheet, str], None]] = {
    "bootstrap.servers": _bootstrap,
    "auto.offset.reset": _reset,
    "isolation.level": _isolation,
    "group.id": _group,
    "ssl.endpoint.identification.algorithm": _identification,
    "sasl.jaas.config": _jaas,
    "sasl.mechanism": _mechanism,
    _LOOKUP: _lookup,
    "ssl.truststore.location": _truststore,
    "ssl.truststore.type": lambda sheet, name: sheet.none(name, f"{_STORES}, and sees which"),
    "ssl.truststore.password": lambda sheet, name: sheet.none(name, "certificates in PEM have no password"),
    "ssl.truststore.certificates": lambda sheet, name: sheet.same(name, "source.kafka.ssl.ca.pem"),
    "ssl.keystore.location": _keystore,
    "ssl.keystore.type": lambda sheet, name: sheet.none(name, f"{_STORES}, and sees which"),
    "ssl.keystore.password": lambda sheet, name: sheet.secret(
        name, "source.kafka.ssl.keystore.password", "KAFKA_KEYSTORE_PASSWORD"
    ),
    "ssl.keystore.key": lambda sheet, name: sheet.secret(name, "source.kafka.ssl.key.pem", "KAFKA_KEY_PEM"),
    "ssl.keystore.certificate.chain": lambda sheet, name: sheet.same(
        name, "source.kafka.ssl.certificate.pem"
    ),
    "ssl.key.password": lambda sheet, name: sheet.secret(
        name, "source.kafka.ssl.key.password", "KAFKA_KEY_PASSWORD"
    ),
    "sasl.username": lambda sheet, name: sheet.same(name, "source.kafka.sasl.username"),
    "sasl.password": lambda sheet, name: sheet.secret(
        name, "source.kafka.sasl.password", "KAFKA_SASL_PASSWORD"
    ),
}

KNOWN = frozenset({*SAME_NAME, *RANGES, *RENAMED, *NO_EQUAL, *_OWN, *KAFKA_OWNED})
"""Names of a Java consumer that mean something here."""


AT_LEAST: tuple[tuple[str, int, str, int, int], ...] = (
    ("reconnect.backoff.max.ms", 10_000, "reconnect.backoff.ms", 100, 0),
    ("retry.backoff.max.ms", 1_000, "retry.backoff.ms", 100, 0),
    ("max.poll.interval.ms", 300_000, "session.timeout.ms", 45_000, 0),
    ("socket.timeout.ms", 60_000, "fetch.wait.max.ms", 500, 1_000),
)
"""Relations that librdkafka wants: a number and its default, another one and its default, and by how much the
first must exceed the second at least."""


def keep_relations(sheet: Sheet) -> None:
    """Raise numbers that librdkafka refuses beside others, which the Java client takes."""
    kafka = sheet.settings.get("source.kafka", {})
    assert isinstance(kafka, dict)
    for name, default, other, others_default, more in AT_LEAST:
        least = int(kafka.get(other, others_default)) + more
        if int(kafka.get(name, default)) < least:
            kafka[name] = str(least)
            sheet.note(f"source.kafka.{name} is {least}: librdkafka refuses less beside {other}.")
