"""Secrets in configurations, recognized by name and by value: one list for every command and every log. Pure.

Names: passwords of Kafka's Java clients, librdkafka, Connect's converters, Spark, Hadoop's S3A, ABFS and GCS
connectors, and Iceberg's catalogs. Values: private keys (RFC 7468), user information and query parameters of
addresses (RFC 3986), `name=value` pairs (JAAS, Azure's connection strings and signatures), bearer tokens
(RFC 6750), JSON web tokens (RFC 7519), and AWS key ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

HIDDEN = "***"

_NO_SECRETS = frozenset({"storage.credentials", "credentials"})
"""Settings whose name sounds like a secret: their values are kinds of credentials."""
_NO_SECRET_NAME = re.compile(r"spark\.kubernetes\.(?:driver|executor)\.secrets\.")
"""Kubernetes' secrets by name: the value is where each is mounted."""
_NAME = re.compile(
    r"passw(?:or)?d|passphrase|jaas|hmac|license|external[._-]?id|connection[._-]?string|user[._-]?info|assertion$"
    r"|secret(?!keyref)"
    r"|credential(?!s?[._-]?(?:provider|type|kind|source|file|path))"
    r"|(?:api|access|account|private|signing|encrypt(?:ion)?|master|shared|customer|keystore|sse)[._-]?key"
    r"(?![._-]?(?:file|path|location|ur[il]|alias|provider|arn|size|gen))"
    r"|(?:^|[._-])key[._-]pem$|oauthbearer\.(?:config|extensions)"
    r"|token$|(?:sas|fixed|oauth2?|bearer|session|refresh)[._-]?token"
    r"(?![._-]?(?:provider|endpoint|file|path|ur[il]|type|class|expir|refresh|renew|exchange|server|scope))"
    r"|(?:^|[._-])sas(?:$|[._-](?!token[._-](?:provider|renew)))"
    r"|(?:^|[._-])custom[._-]headers$|(?:^|[._-])authorization$|(?:^|[._-])cookie$",
    re.IGNORECASE,
)
_NAMED = (
    r"[\w.-]{0,80}(?:passw(?:or)?d|passphrase|secret|token|credential|signature|authorization"
    r"|(?:api|account|access|shared|private|signing)[._-]?key(?:[._-]?id)?)|(?<![A-Za-z0-9])(?:sig|sas|code)"
)
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'"
_WITHIN = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<secret>-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*KEY-----|\Z))",
        r"://(?:\$\{[^{}]*\}|[^\s/@:\"']){0,200}:(?P<secret>(?:\$\{[^{}]*\}|[^\s/@\"'$]|\$){1,200})@",
        r"https?://(?P<secret>[^\s/@:\"']{1,200})@",  # in other schemes it may be a container
        rf"(?:{_NAMED})\s*=\s*(?P<secret>{_QUOTED}|[^\s;,&\"']+)",
        rf"\"(?:{_NAMED})\"\s*:\s*(?P<secret>{_QUOTED})",
        r"\b(?:bearer|basic)\s+(?P<secret>(?=\S*[0-9])[A-Za-z0-9._~+/=-]{8,})",
        r"\b(?P<secret>eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",
        r"\b(?P<secret>A[KS]IA[A-Z0-9]{16})\b",
    )
)
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_NO_SECRET_VALUE = re.compile(r"|true|false|arn:\S+", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Return whether a property of this name, of any system, holds a secret."""
    if name in _NO_SECRETS or _NO_SECRET_NAME.match(name):
        return False
    return _NAME.search(name) is not None


def holds_secret(name: str, value: str) -> bool:
    """Return whether a property holds a secret in clear text, by its name or by its value.

    A reference (`${env:NAME}`, or another system's `${…}`) is no secret, nor is the ARN of a key.
    """
    bare = value.strip()
    if _REFERENCE.fullmatch(bare) or _NO_SECRET_VALUE.fullmatch(bare):
        return False
    return is_secret_name(name) or without_secrets(bare) != bare


def secrets_within(text: str) -> Iterator[str]:
    """Yield the secrets in a text that are recognized by their form; references are left out."""
    for pattern in _WITHIN:
        for found in pattern.finditer(text):
            secret = _unquoted(found["secret"])
            if secret and secret != HIDDEN and not _REFERENCE.fullmatch(secret):
                yield secret


def without_secrets(text: str) -> str:
    """Return the text with each secret that is recognized by its form replaced by `HIDDEN`."""
    for pattern in _WITHIN:
        text = pattern.sub(_hidden, text)
    return text


def shown(name: str, value: str) -> str:
    """Return a property's value for display: a reference as it is, a secret not at all."""
    if is_secret_name(name):
        return HIDDEN if holds_secret(name, value) else value
    return without_secrets(value)


def redact(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties for display; see `shown`."""
    return {name: shown(name, value) for name, value in properties.items()}


def _hidden(found: re.Match[str]) -> str:
    secret = found["secret"]
    bare = _unquoted(secret)
    if not bare or _REFERENCE.fullmatch(bare):
        return found.group()
    quote = (len(secret) - len(bare)) // 2
    start, end = (at - found.start() for at in found.span("secret"))
    start, end = start + quote, end - quote
    return f"{found.group()[:start]}{HIDDEN}{found.group()[end:]}"


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
