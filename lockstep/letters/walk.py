"""One walk through a pipeline's dead letters: read, chosen, tried, and where that is asked for sent back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from control_topic.clocks import wall_ms
from control_topic.spelling import some
from lockstep.config import Config
from lockstep.errors import Failed
from lockstep.letters.choice import Choice, Chooser
from lockstep.letters.letter import Letter, letters_of
from lockstep.letters.marks import By, Marks, mark_topic
from lockstep.letters.reading import Broker, read_batches, read_marks
from lockstep.letters.replay import How, Replay
from lockstep.letters.report import Outcome, Seen
from lockstep.letters.topics import RETENTION, TIMES, LetterTopics
from lockstep.letters.transactions import transactions
from lockstep.letters.trial import Trial, Verdict
from table.port import UPSERT

UNORDERED = (
    "rows of the table are replaced by whatever comes later (table.ordering is not set): an old record that "
    "goes "
    "back replaces a newer row of its key"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which letters, and how many at most; None: no bound. `mended`: only those that would be rows now."""

    choice: Choice
    limit: int | None
    with_sent_back: bool = False
    mended: bool = False


class Walk:
    """Tells `outcome` what it sees. Raises `Failed`, and what reading and deciding raise."""

    def __init__(self, config: Config, kafka: Mapping[str, str], asked: Asked, outcome: Outcome) -> None:
        self._config, self._kafka, self._asked, self._outcome = config, kafka, asked, outcome
        self._broker = Broker(kafka=kafka, group=config.group_id, reader=config.source.reader)
        self._topics = LetterTopics(kafka)
        self._trial = Trial(config)
        self._left = asked.limit
        self._oldest_ms: dict[str, int] = {}
        """Of records that go back, by source topic."""

    def seen(self, *, follow: bool = False) -> Iterator[Seen]:
        """Those that are meant, the oldest first."""
        topics = self._there()
        marks = self._marks(topics)
        for letter, verdict in self._chosen(topics, marks, follow=follow):
            yield self._told(Seen(letter=letter, verdict=verdict, went=marks.get(letter.identity)))

    def planned(self, how: How) -> Iterator[Seen]:
        """Those that would go back. Nothing is written."""
        topics = self._there()
        for letter, verdict in self._chosen(topics, self._marks(topics)):
            yield self._told(Seen(letter=letter, verdict=verdict, why_not_sent=letter.why_not_sent))
            self._look_at(letter)
        self._warn(how)

    def replayed(self, by: By, how: How) -> Iterator[Seen]:
        """Those that went back, each once its transaction is committed; and those that cannot."""
        for topic in self._there():
            if self._left == 0:
                self._outcome.limited = True
                break
            self._topics.ensure_marks(topic, make=self._config.record.dead_letter_partitions > 0)
            taken = self._topics.message_bytes_max([*self._config.source.topics, mark_topic(topic)])
            with closing(Replay(self._kafka, topic, by, how, message_bytes_max=taken)) as replay:
                replay.begin()
                yield from self._sent(topic, read_marks(self._broker, [topic]), replay)
        self._warn(how)

    def _sent(self, topic: str, marks: Marks, replay: Replay) -> Iterator[Seen]:
        verdicts: dict[bytes, Verdict] = {}

        def to_send() -> Iterator[Letter]:
            for letter, verdict in self._chosen([topic], marks):
                verdicts[letter.identity] = verdict
                self._look_at(letter)
                yield letter

        for letters in transactions(to_send()):
            whole = [letter for letter in letters if not letter.why_not_sent]
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
                        why_not_sent=letter.why_not_sent,
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
        self, topics: Sequence[str], marks: Marks, *, follow: bool = False
    ) -> Iterator[tuple[Letter, Verdict]]:
        asked = self._asked
        chooser = Chooser(asked.choice, marks, with_sent_back=asked.with_sent_back, forgets=follow)
        self._outcome.counts.append(chooser.counts)
        for batch in read_batches(self._broker, topics, since_ms=asked.choice.since_ms, follow=follow):
            letters = chooser.take(letters_of(batch))
            for letter, verdict in zip(letters, self._trial.verdicts(letters), strict=True):
                if asked.mended and not verdict.is_row:
                    self._outcome.left_out += 1
                    continue
                if self._left == 0:
                    self._outcome.limited = True
                    return
                self._left = None if self._left is None else self._left - 1
                yield letter, verdict

    def _told(self, seen: Seen) -> Seen:
        self._outcome.add(seen)
        return seen

    # --- what is to be known of a replay ------------------------------------------------------------

    def _look_at(self, letter: Letter) -> None:
        topic = letter.partition.topic
        if letter.why_not_sent:
            return
        self._oldest_ms[topic] = min(self._oldest_ms.get(topic, letter.timestamp_ms), letter.timestamp_ms)

    def _warn(self, how: How) -> None:
        config, warnings = self._config, self._outcome.warnings
        if self._outcome.sent and config.table.kind == UPSERT and not config.ordering_field:
            warnings.append(UNORDERED)
        if how.new_time or not self._oldest_ms:
            return
        now_ms = wall_ms()
        for topic, found in sorted(self._topics.settings(sorted(self._oldest_ms)).items()):
            kept_ms = int(found[RETENTION])
            if found[TIMES] == "CreateTime" and 0 <= kept_ms < now_ms - self._oldest_ms[topic]:
                warnings.append(
                    f"some records are older than {topic} keeps them (retention.ms = {kept_ms}): they may "
                    "be removed "
                    "before they are read, and the run would halt for it; --new-time sends them with the "
                    "time of now"
                )
