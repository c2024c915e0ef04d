"""Schemas by id, of a registry that speaks Confluent's REST interface, through confluent-kafka's own client.

What becomes of each answer is in docs/formats.md. In short: what the registry says it does not know is
unknown; whatever is no answer of a registry is an outage; what it says differently than before stops.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from participant.records.errors import (
    ChangedSchema,
    NoSuchSchema,
    SchemasPending,
    SchemasUnavailable,
    UnknownSchema,
)
from participant.records.registry.ahead import QuestionsAhead
from participant.records.registry.disk import KeptSchemas, folder_of
from participant.records.registry.settings import RegistrySettings
from table.schema import SchemaError

log = logging.getLogger("lockstep.registry")

HTTP_CLIENTS = ("httpx", "httpx2")
"""Whichever of the two confluent-kafka's client has found."""
RETRIES = 1
RETRY_FIRST_MS, RETRY_MAX_MS = 200, 1_000
AWAY_S = 30.0
"""For so long after it did not answer it is not asked for what is kept."""
SILENT_FIRST_S, SILENT_MAX_S = 0.5, 5.0
"""Nor for anything else for so long; doubled each time."""
WAIT_S, WAIT_AGAIN_S = 3.0, 0.1
"""Whoever decodes has others' records to read: so long it waits for an answer, and where the last did not
come. What comes later is there when it asks again."""
ASKS_MAX = 8
"""Questions without an answer at once: each is a thread, and one that drips does not end."""
UNKNOWN_MAX = 100_000
"""Ids that it did not know; then the oldest is asked for again. More than one batch has records."""
REFERENCES_MAX = 200
VERSIONS_MAX = 3
TEXT_CHARS_MAX = 1_048_576
NO_SUCH_SUBJECT, NO_SUCH_VERSION, NO_SUCH_SCHEMA = 40401, 40402, 40403
UNKNOWN_CODES = frozenset({NO_SUCH_SUBJECT, NO_SUCH_VERSION, NO_SUCH_SCHEMA})
"""Its own; a 404 without one is some other server's."""


def alike_json(one: str, other: str) -> bool:
    """Whether two texts are the same JSON."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except (ValueError, RecursionError):
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaKind:
    """What schemas are of, as a registry calls it."""

    name: str
    words: str
    """For people."""
    format: str | None = None
    """In which spelling they are asked for, where there are several."""
    spelled: Callable[[str, str], str] | None = None
    """What is told of a schema: of its text, and of the name by which another refers to it, empty for the one
    that was asked for. None: the text alone. Raises `SchemasUnavailable` for another spelling."""
    references: bool = True
    """Whether what a schema refers to is asked for as well."""
    kept_as: str = ""
    """Before an id, in the names of the files that keep them: what is told of an id is another kind's not."""
    alike: Callable[[str, str], bool] = alike_json
    """Whether two of what is told are one schema, however they are spelled."""
    decides: bool = True
    """Whether values are read by what is told: another schema for an id would read them otherwise."""


AVRO = SchemaKind(name="AVRO", words="Avro")


class _Ask:
    """A question, in a thread of its own: the client limits each silence, and not a slow answer."""

    def __init__(self, ask: Callable[[], Any], deadline_s: float) -> None:
        self._ask, self._deadline_s, self._began_s = ask, deadline_s, time.monotonic()
        self.done: list[Any] = []
        """The answer, or the error; empty while there is none."""
        self._thread = threading.Thread(target=self._run, name="registry", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.done.append(self._ask())
        except BaseException as error:  # noqa: BLE001 - raised where somebody waits
            self.done.append(error)

    @property
    def waited_s(self) -> float:
        return time.monotonic() - self._began_s

    @property
    def is_late(self) -> bool:
        """Whether it is no longer waited for."""
        return self.waited_s >= self._deadline_s

    def is_done(self, wait_s: float) -> bool:
        """Whether it is, within so many seconds, or its deadline."""
        self._thread.join(max(0.0, min(wait_s, self._deadline_s - self.waited_s)))
        return bool(self.done)


class RegistryClient:
    """Asks. Raises `SchemaError` where the client is not installed, or refuses its settings."""

    def __init__(self, settings: RegistrySettings, kind: SchemaKind = AVRO) -> None:
        self._kind = kind
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient
            from confluent_kafka.schema_registry.error import SchemaRegistryError
        except ImportError as error:
            raise SchemaError(
                f"the client of the schema registry is not installed ({error.name or error}): pip install "
                "'lockstep[registry]' wherever workers run"
            ) from None
        for name in HTTP_CLIENTS:
            logging.getLogger(name).setLevel(logging.WARNING)  # a line of each request is no news of the run
        self._refused = SchemaRegistryError
        self._asks: list[_Ask] = []
        self._open: dict[int | str, _Ask] = {}
        """Those of them whose answer is still wanted."""
        self._where = ", ".join(settings.urls)
        attempts_s = settings.timeout_ms / 1_000 * (RETRIES + 1) + RETRIES * RETRY_MAX_MS / 1_000
        self._deadline_s = attempts_s * len(settings.urls) + 1.0
        try:
            self._client: Any = SchemaRegistryClient(_properties(settings))
        except (ValueError, OSError) as error:  # of a certificate's file
            raise SchemaError(f"[registry] cannot be used: {_words(error)}") from None

    def schema(self, key: int | str, *, wait_s: float = math.inf) -> tuple[str, ...]:
        """The schema of this id or GUID, behind those that it refers to.

        Where it takes longer than `wait_s`, that is no answer yet: it is asked on, and whoever asks for the
        same once more is given what has come. Raises `UnknownSchema`, `SchemasUnavailable`.
        """

        def ask() -> tuple[str, ...]:
            spelling = self._kind.format
            if isinstance(key, int):
                return self._with_references(self._client.get_schema(key, fmt=spelling))
            return self._with_references(self._client.get_schema_by_guid(key, fmt=spelling))

        asked = self._open.pop(key, None)
        if asked is None or (asked.is_late and not asked.done):
            asked = self._asking(ask)
        if not asked.is_done(wait_s) and not asked.is_late:
            self._open[key] = asked
            raise self._unavailable(f"has not answered for {asked.waited_s:.0f} s")
        found: tuple[str, ...] = self._answer(asked)
        return found

    def forget(self) -> None:
        """Ask the registry for what was asked for before: the client remembers answers."""
        self._client.clear_caches()

    def latest(self, subject: str) -> tuple[int, tuple[str, ...]]:
        """Id and text of a subject's newest schema. Raises `UnknownSchema`, `SchemasUnavailable`."""

        def ask() -> tuple[int, tuple[str, ...]]:
            told = self._client.get_latest_version(subject, self._kind.format)
            if told.schema_id is None:
                raise TypeError("an answer without an id")
            return told.schema_id, self._with_references(told.schema)

        found: tuple[int, tuple[str, ...]] = self._asked(ask)
        return found

    def versions(self, number: int) -> tuple[tuple[str, int], ...]:
        """Subject and version of all that the schema of this id is. Raises as `schema`."""

        def ask() -> tuple[tuple[str, int], ...]:
            told = self._client.get_schema_versions(number, limit=VERSIONS_MAX)
            return tuple((str(one.subject), int(one.version or 0)) for one in told[:VERSIONS_MAX])

        found: tuple[tuple[str, int], ...] = self._asked(ask, wait_s=WAIT_S)
        return found

    def _with_references(self, schema: Any) -> tuple[str, ...]:
        found: dict[tuple[str, str, int], str] = {}
        text = self._collect(schema, "", found, 0)
        return (*found.values(), text)

    def _collect(self, schema: Any, name: str, found: dict[tuple[str, str, int], str], depth: int) -> str:
        """The schema as it is told; what it refers to is in `found` before it, each once."""
        text, kind = schema.schema_str, self._kind
        if not isinstance(text, str):
            raise TypeError("an answer without a schema")
        if (schema.schema_type or AVRO.name) != kind.name:
            raise UnknownSchema(f"it is one of {str(schema.schema_type)[:40]}, not of {kind.words}")
        for one in (schema.references or ()) if kind.references else ():
            called = str(one.name) if kind.spelled is not None else ""
            version = (called, str(one.subject), int(one.version))
            if version in found:
                continue
            if depth >= REFERENCES_MAX or len(found) >= REFERENCES_MAX:
                raise UnknownSchema(f"it refers to more than {REFERENCES_MAX} others")
            inner = self._client.get_version(*version[1:], True, kind.format).schema
            found[version] = self._collect(inner, called, found, depth + 1)
        if len(text) + sum(map(len, found.values())) > TEXT_CHARS_MAX:
            raise UnknownSchema(f"it has more than {TEXT_CHARS_MAX:,} characters")
        return kind.spelled(text, name) if kind.spelled is not None else text

    def _asked(self, ask: Callable[[], Any], *, wait_s: float = math.inf) -> Any:
        """The answer to what nobody asks for a second time."""
        asked = self._asking(ask)
        asked.is_done(wait_s)
        return self._answer(asked)

    def _asking(self, ask: Callable[[], Any]) -> _Ask:
        """Raises `SchemasUnavailable` where too many questions have no answer."""
        self._asks = [one for one in self._asks if not one.done]
        if len(self._asks) >= ASKS_MAX:
            raise self._unavailable(f"has left {ASKS_MAX} questions without an answer")
        self._asks.append(_Ask(ask, self._deadline_s))
        return self._asks[-1]

    def _answer(self, asked: _Ask) -> Any:
        """Of one that is done, or no longer waited for."""
        if not asked.done:
            raise self._unavailable(f"has not answered for {asked.waited_s:.0f} s")
        (answer,) = asked.done
        if isinstance(answer, BaseException):
            raise self._judged(answer) from None
        return answer

    def _judged(self, error: BaseException) -> Exception:
        """What an error of the client's means."""
        if isinstance(error, UnknownSchema):
            return error
        if isinstance(error, SchemasUnavailable):
            return self._unavailable(str(error))
        if isinstance(error, self._refused):
            return self._judged_status(error)
        if isinstance(error, json.JSONDecodeError):
            return self._unavailable("answers with something that is not JSON, as a proxy's page is")
        if isinstance(error, TypeError | AttributeError | LookupError | ValueError):
            return self._unavailable("answers with JSON that holds no schema: is it a schema registry?")
        if type(error).__module__.split(".")[0] in HTTP_CLIENTS or isinstance(error, OSError):
            return self._unavailable(f"cannot be reached ({_words(error)})")
        raise error

    def _judged_status(self, error: Any) -> Exception:
        status, code = error.http_status_code, error.error_code
        if status == 404 and code in UNKNOWN_CODES:
            return NoSuchSchema("the registry does not know it")
        if status in (401, 403):
            return self._unavailable(
                f"refuses us ({status}): see to user, password, token or certificate in [registry]"
            )
        if 300 <= status < 400:
            return self._unavailable(
                f"sends us elsewhere ({status}), where our credentials do not go: give registry.url as it "
                "is in the end"
            )
        if status == 404:
            return self._unavailable("answers 404, and not as a schema registry: is the path right?")
        return self._unavailable(f"answers with an error ({status})")

    def _unavailable(self, why: str) -> SchemasUnavailable:
        return SchemasUnavailable(f"the schema registry at {self._where} {why}")


class RegistrySchemas:
    """What the registry says, and has said. Not for several threads.

    An id is asked for once in a process's life, though it is kept in a file: a registry that was set up anew
    counts from 1 again, and what is kept would be another's schema. Only while it is away the file is enough.
    """

    def __init__(
        self,
        settings: RegistrySettings,
        kind: SchemaKind = AVRO,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = RegistryClient(settings, kind)
        self._settings, self._kind, self._session = settings, kind, settings.session
        self._ahead = QuestionsAhead(lambda: RegistryClient(settings, kind).schema)
        if self._session is not None:
            self._session.ask_ahead.append(self._want)
        self._again: RegistryClient | None = None
        """Asks again for what was told, in another thread."""
        self._alike, self._kept_as = kind.alike, kind.kept_as
        self._kept = KeptSchemas(folder_of(settings.cache_folder, settings.urls))
        self._now_s = now_s
        self._away_until_s = 0.0
        self._silence: SchemasUnavailable | None = None
        """Why it gave no answer to who asked last, until it gives one."""
        self._silent_until_s, self._silent_s = 0.0, SILENT_FIRST_S
        self._unknown: dict[int | str, str] = {}
        self._found: set[int | str] = set()
        self._is_pending = False
        """Whether the last batch waits for answers."""

    def find(self, key: int | str | bytes) -> tuple[str, ...]:
        """See `participant.records.by_schema.one_by_one.Schemas`. Raises `SchemasPending` as well."""
        if isinstance(key, bytes):
            raise UnknownSchema("a registry knows no fingerprints")
        name = f"{self._kept_as}{key}"
        kept = self._kept.read(name)
        if kept is not None and self._now_s() < self._away_until_s:
            return kept
        if key in self._unknown:
            raise UnknownSchema(self._unknown[key])
        if kept is None and self._silence is not None and self._now_s() < self._silent_until_s:
            raise SchemasUnavailable(str(self._silence))
        try:
            told = self._ahead.take(key) or self._asked(key)
        except SchemasPending:
            self._is_pending = True
            raise
        except SchemasUnavailable as why:
            if kept is None:
                raise
            self._away_until_s = self._now_s() + AWAY_S
            log.warning("schema %s is read as it is kept in %s: %s", key, self._kept.folder, why)
            return kept
        except UnknownSchema as why:
            if kept is not None and isinstance(why, NoSuchSchema):  # deleted since
                return kept
            while len(self._unknown) >= UNKNOWN_MAX:
                del self._unknown[next(iter(self._unknown))]
            self._unknown[key] = str(why)
            raise
        self._keep(key, name, kept, told)
        return told

    def _keep(self, key: int | str, name: str, kept: tuple[str, ...] | None, told: tuple[str, ...]) -> None:
        """Keep what was told, and have it asked for again. Raises `ChangedSchema`."""
        if len(self._found) >= UNKNOWN_MAX:
            self._found.clear()
        self._found.add(key)
        if kept is not None and not self._is_same(kept, told):
            raise ChangedSchema(
                f"the schema registry has another schema {key} than it had before, which is kept in "
                f"{self._kept.path(name)}: it was set up anew, or registry.url leads to another one. "
                "Which of the two this record was written by nobody can tell; where it is the new one, "
                "remove that file, on every host of a worker"
            )
        if kept is None:
            self._kept.write(name, told)
        if self._session is not None and self._kind.decides:
            kind = self._kept_as or self._kind.name
            self._session.told(kind, key, told, partial(self._ask_again, key), self._is_same)

    def _asked(self, key: int | str) -> tuple[str, ...]:
        """Ask the registry, and note its silence. Raises `SchemasPending`, and as the client does."""
        wait_s = WAIT_S if self._silence is None else WAIT_AGAIN_S
        try:
            with self._session.question() if self._session is not None else nullcontext():
                told = self._client.schema(key, wait_s=wait_s)
        except SchemasPending:
            raise
        except SchemasUnavailable as why:
            self._silence, self._silent_until_s = why, self._now_s() + self._silent_s
            self._silent_s = min(2 * self._silent_s, SILENT_MAX_S)
            raise
        except UnknownSchema:
            self._silence, self._silent_s = None, SILENT_FIRST_S
            raise
        self._silence, self._silent_s = None, SILENT_FIRST_S
        return told

    def _want(self, keys: Iterable[int | str]) -> None:
        """Ask ahead for those of these that were never asked for, where a batch waits for some of them."""
        if not self._is_pending:
            return
        self._is_pending = False
        self._ahead.want(key for key in keys if key not in self._unknown and key not in self._found)

    def _ask_again(self, key: int | str) -> tuple[str, ...]:
        """Raises as `RegistryClient.schema`."""
        if self._again is None:
            self._again = RegistryClient(self._settings, self._kind)
        self._again.forget()
        return self._again.schema(key)

    def _is_same(self, kept: tuple[str, ...], told: tuple[str, ...]) -> bool:
        pairs = zip(kept, told, strict=False)
        return len(kept) == len(told) and all(a == b or self._alike(a, b) for a, b in pairs)

    def known_as(self, key: int | str | bytes) -> str:
        """Subject and version, for people; empty where they are not to be had now."""
        try:
            named = self._client.versions(key) if isinstance(key, int) else ()
        except (UnknownSchema, SchemasUnavailable):
            return ""
        return ", ".join(f"{subject[:200]} version {version}" for subject, version in named)


def _properties(settings: RegistrySettings) -> dict[str, Any]:
    """The client's own names for them."""
    named: dict[str, Any] = {
        "url": ",".join(settings.urls),
        "timeout": settings.timeout_ms / 1_000,
        "max.retries": RETRIES,
        "retries.wait.ms": RETRY_FIRST_MS,
        "retries.max.wait.ms": RETRY_MAX_MS,
    }
    if settings.user:
        named["basic.auth.user.info"] = f"{settings.user}:{settings.password}"
    if settings.token:
        named |= {
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": settings.token,
            "bearer.auth.logical.cluster": settings.cluster,
        }
    for name, value in (
        ("ssl.ca.location", settings.ca_file),
        ("ssl.certificate.location", settings.certificate_file),
        ("ssl.key.location", settings.key_file),
        ("ssl.key.password", settings.key_password),
    ):
        if value:
            named[name] = value
    return named


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
