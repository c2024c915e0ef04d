"""One walk through a pipeline's dead letters: read, chosen, tried, and where that is asked for sent back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from control_topic.clocks import wall_ms
from control_topic.spelling import some
from lockstep.brokers.other_groups import other_groups
from lockstep.config import Config
from lockstep.errors import Failed
from lockstep.letters.choice import Choice, Chooser
from lockstep.letters.committed_rejects import CommittedRejects, Standing
from lockstep.letters.letter import Letter, letters_of
from lockstep.letters.marks import By, Marks, mark_topic
from lockstep.letters.reading import Broker, read_batches, read_marks
from lockstep.letters.replay import How, Replay
from lockstep.letters.report import Outcome, Seen
from lockstep.letters.table_commits import read_committed
from lockstep.letters.topics import CLEANUP, RETENTION, TIMES, LetterTopics
from lockstep.letters.transactions import transactions
from lockstep.letters.trial import Trial, Verdict
from table.port import UPSERT

UNORDERED = (
    "rows of the table are replaced by whatever comes later (table.ordering is not set): an old record that "
    "goes "
    "back replaces a newer row of its key"
)

TOO_OLD = (
    "its source topic removes records of that time (retention.ms), perhaps before it is read: --new-time "
    "sends it with "
    "the time of now"
)
NEVER_MS = -(2**63)
GROUPS_NAMED_MAX = 3
MARGIN_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which letters, and how many at most; None: no bound. `mended`: only those that would be rows now."""

    choice: Choice
    limit: int | None
    with_sent_back: bool = False
    mended: bool = False
    known_groups: frozenset[str] = frozenset()
    """Other consumer groups that may receive replayed records, as the operator says."""


class Walk:
    """Tells `outcome` what it sees. Raises `Failed`, and what reading and deciding raise.

    `committed`: rejects of the pipeline's commits; by default they are read from its table before a replay.
    """

    def __init__(
        self,
        config: Config,
        kafka: Mapping[str, str],
        asked: Asked,
        outcome: Outcome,
        *,
        committed: CommittedRejects | None = None,
    ) -> None:
        self._config, self._kafka, self._asked, self._outcome = config, kafka, asked, outcome
        self._broker = Broker(kafka=kafka, group=config.group_id, reader=config.source.reader)
        self._topics = LetterTopics(kafka)
        self._trial = Trial(config)
        self._left = asked.limit
        self._committed = committed
        self._too_old_ms: dict[str, int] = {}
        """By source topic."""

    def seen(self, *, follow: bool = False) -> Iterator[Seen]:
        """Those that are meant, the oldest first."""
        topics = self._there()
        marks = self._marks(topics)
        for letter, verdict in self._chosen(topics, marks, follow=follow):
            yield self._told(Seen(letter=letter, verdict=verdict, went=marks.get(letter.identity)))

    def planned(self, how: How) -> Iterator[Seen]:
        """Those that would go back. Nothing is written."""
        topics = self._there()
        if found := self._other_groups():
            self._outcome.warnings.append(f"{others_read(found)} --execute refuses without {options(found)}")
        committed = self._prepare(topics, how)
        for letter, verdict in self._chosen(topics, self._marks(topics), committed=committed):
            yield self._told(Seen(letter=letter, verdict=verdict, why_not_sent=self._why_not(letter)))

    def replayed(self, by: By, how: How) -> Iterator[Seen]:
        """Those that went back, each once its transaction is committed; and those that cannot."""
        topics = self._there()
        if found := self._other_groups():
            raise Failed(
                f"{others_read(found)} Nothing was sent. If they may receive the records, add "
                f"{options(found)}; else stop these readers and delete their groups' offsets."
            )
        committed = self._prepare(topics, how)
        for topic in topics:
            if self._left == 0:
                self._outcome.limited = True
                break
            self._topics.ensure_marks(topic, make=self._config.record.dead_letter_partitions > 0)
            taken = self._topics.message_bytes_max([*self._config.source.topics, mark_topic(topic)])
            with closing(Replay(self._kafka, topic, by, how, message_bytes_max=taken)) as replay:
                replay.begin()
                yield from self._sent(topic, read_marks(self._broker, [topic]), replay, committed)

    def _sent(self, topic: str, marks: Marks, replay: Replay, committed: CommittedRejects) -> Iterator[Seen]:
        verdicts: dict[bytes, Verdict] = {}

        def to_send() -> Iterator[Letter]:
            for letter, verdict in self._chosen([topic], marks, committed=committed):
                verdicts[letter.identity] = verdict
                yield letter

        for letters in transactions(to_send()):
            whole = [letter for letter in letters if not self._why_not(letter)]
            went = dict(
                zip([one.identity for one in whole], replay.send(whole) if whole else (), strict=True)
            )
            for letter in letters:
                identity = letter.identity
                yield self._told(
                    Seen(
                        letter=letter,
                        verdict=verdicts.pop(identity),
                        went=went.get(identity),
                        why_not_sent=self._why_not(letter),
                    )
                )

    # --- choosing -----------------------------------------------------------------------------------

    def _there(self) -> list[str]:
        """The dead-letter topics that are, whatever becomes of a bad record today."""
        config = self._config
        topics = sorted({config.dead_letter_topic(topic) for topic in config.source.topics})
        there = self._topics.there(topics)
        if not there:
            raise Failed(
                f"The dead-letter topic {some(topics)} does not exist on {config.source.bootstrap_servers}: "
                "nothing was set "
                "aside yet, or record.dead_letter_topic is another one."
            )
        return sorted(there)

    def _marks(self, topics: Sequence[str]) -> Marks:
        there = set(self._topics.there([mark_topic(topic) for topic in topics]))
        return read_marks(self._broker, [topic for topic in topics if mark_topic(topic) in there])

    def _chosen(
        self,
        topics: Sequence[str],
        marks: Marks,
        *,
        follow: bool = False,
        committed: CommittedRejects | None = None,
    ) -> Iterator[tuple[Letter, Verdict]]:
        """`committed`: where only letters of committed rejects are asked for."""
        asked = self._asked
        chooser = Chooser(asked.choice, marks, with_sent_back=asked.with_sent_back, forgets=follow)
        self._outcome.counts.append(chooser.counts)
        for batch in read_batches(self._broker, topics, since_ms=asked.choice.since_ms, follow=follow):
            letters = chooser.take(letters_of(batch))
            if committed is not None:
                letters = [letter for letter in letters if self._is_rejected(letter, committed)]
            for letter, verdict in zip(letters, self._trial.verdicts(letters), strict=True):
                if asked.mended and not verdict.is_row:
                    self._outcome.left_out += 1
                    continue
                if self._left == 0:
                    self._outcome.limited = True
                    return
                self._left = None if self._left is None else self._left - 1
                yield letter, verdict

    def _is_rejected(self, letter: Letter, committed: CommittedRejects) -> bool:
        """Whether a committed transaction rejected its record; others are counted."""
        standing = committed.standing(letter)
        if standing is Standing.REJECTED:
            return True
        self._outcome.unproved[standing] += 1
        return False

    def _told(self, seen: Seen) -> Seen:
        self._outcome.add(seen)
        return seen

    # --- what is to be known of a replay ------------------------------------------------------------

    def _prepare(self, topics: Sequence[str], how: How) -> CommittedRejects:
        """Return the committed rejects; note up to which time source topics remove records at once."""
        committed = self._proofs(topics)
        self._note_limits(how)
        return committed

    def _proofs(self, topics: Sequence[str]) -> CommittedRejects:
        committed = self._committed if self._committed is not None else read_committed(self._config)
        if committed.lists_only_some:
            for batch in read_batches(self._broker, topics):
                for letter in letters_of(batch):
                    if isinstance(letter, Letter):
                        committed.count(letter)
        if instant := committed.begins_with:
            self._outcome.warnings.append(
                f"the timeline begins with instant {instant}, which is not the pipeline's first commit: if "
                "an operator had moved offsets back before it, a record may be a row of an older commit"
            )
        return committed

    def _other_groups(self) -> dict[str, str]:
        """Other consumer groups that read the topics that are written to, without those that are named."""
        config, asked = self._config, self._asked
        named = {one.topic for one in asked.choice.records}
        topics = [topic for topic in config.source.topics if not named or topic in named]
        if not topics:
            return {}
        return other_groups(self._kafka, topics, without={config.group_id, *asked.known_groups})

    def _note_limits(self, how: How) -> None:
        config, warnings = self._config, self._outcome.warnings
        if config.table.kind == UPSERT and not config.ordering_field:
            warnings.append(UNORDERED)
        if how.new_time:
            return
        now_ms, found = wall_ms(), self._topics.settings(config.source.topics)
        for topic in config.source.topics:
            if topic in found:
                self._too_old_ms[topic] = too_old_ms(found[topic], now_ms)
            else:
                warnings.append(
                    f"how long {topic} keeps records may not be read, and some may be too old for it"
                )

    def _why_not(self, letter: Letter) -> str:
        """Why it stays; empty where it goes back."""
        if letter.timestamp_ms <= self._too_old_ms.get(letter.partition.topic, NEVER_MS):
            return TOO_OLD
        return letter.why_not_sent


def others_read(groups: Mapping[str, str]) -> str:
    """Sentence on other consumer groups and how it shows that they read a source topic."""
    shown = some([f"{group} ({how})" for group, how in groups.items()])
    return f"Other consumer groups read the source topics, and would receive replayed records again: {shown}."


def options(groups: Mapping[str, str]) -> str:
    """Options that name the first of these groups."""
    named = " ".join(f"--other-group {group}" for group in list(groups)[:GROUPS_NAMED_MAX])
    return named + (" …" if len(groups) > GROUPS_NAMED_MAX else "")


def too_old_ms(settings: Mapping[str, str], now_ms: int) -> int:
    """A record of this time or before is removed soon after it comes, if not at once."""
    kept_ms = int(settings[RETENTION])
    if kept_ms < 0 or "delete" not in settings[CLEANUP] or settings[TIMES] != "CreateTime":
        return NEVER_MS
    return now_ms - kept_ms + min(kept_ms // 10, MARGIN_MS)
