"""Dead letters in pieces: what of them is durable, what is sent again, what whoever waits hears of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest
from confluent_kafka import KafkaError

from control_topic.messages import SourcePartition
from participant.errors import DeadLetterError, DeadLetterRefused, DeadLetterUnavailable
from participant.records.raw import RawBatch, Values
from participant.records.rejects import HeldRejects, Rejects
from participant.source import dead_letters as dead_letter
from participant.source.dead_letters import FIRST_BYTES, PIECES, DeadLetters, Window
from participant.source.letter_senders import PIECES_MAX, PieceAnswer

SIZE_BYTES = FIRST_BYTES // PIECES // 4 - dead_letter.RECORD_BYTES
"""Of a record of which a first piece holds four."""
WINDOW_BYTES = FIRST_BYTES


class Script:
    """A broker that answers when it is told to. `sent`: keys of what senders were handed, in pieces.

    `answers`: of how many more pieces, in order, all records are answered; the others get no answer.
    `refused`: key -> code; a batch is as long as its piece, unless its sender sends each record alone, which
    is then refused as well but for `batches_only`.
    """

    def __init__(self) -> None:
        self.sent: list[list[str]] = []
        self.alone: list[list[str]] = []
        self.batch_bytes: list[int] = []
        self.taken: list[str] = []
        self.answers = 10**9
        self.refused: dict[str, int] = {}
        self.batches_only = False
        self.on_way_bytes_max = 0
        self.open = 0
        self.runs: set[str] = set()

    def open_sender(self, settings: dict[str, object], run: str) -> ScriptedSender:
        self.open += 1
        self.runs.add(run)
        return ScriptedSender(self, alone=settings.get("batch.num.messages") == 1, settings=settings)


class ScriptedSender:
    def __init__(self, script: Script, *, alone: bool, settings: dict[str, object]) -> None:
        self._script, self._alone = script, alone
        if not alone:
            script.batch_bytes.append(int(str(settings["batch.size"])))
        self._pieces: dict[int, tuple[list[str], list[int]]] = {}
        self._answers: dict[int, PieceAnswer] = {}
        self._delivered = 0

    def send(self, piece: int, topic: str, held: HeldRejects, first: int, end: int) -> None:
        assert len(self._pieces) < PIECES_MAX
        keys = [
            f"{held.partition.topic}-{held.partition.number}-{held.offsets[i]}" for i in range(first, end)
        ]
        sizes = held.record_bytes()[first:end].tolist()
        self._pieces[piece] = keys, sizes
        (self._script.alone if self._alone else self._script.sent).append(keys)
        on_way = sum(sum(s) + dead_letter.RECORD_BYTES * len(s) for _, s in self._pieces.values())
        self._script.on_way_bytes_max = max(self._script.on_way_bytes_max, on_way)

    def wait(self, piece: int, timeout_s: float) -> PieceAnswer:
        if piece in self._pieces and self._script.answers > 0:
            self._script.answers -= 1
            self._answers[piece] = self._answer(*self._pieces.pop(piece))
        if piece in self._pieces:
            return PieceAnswer(len(self._pieces[piece][0]), 0, 0, 0, 0, self._delivered)
        return self._answers[piece]._replace(delivered=self._delivered)

    def _answer(self, keys: list[str], sizes: list[int]) -> PieceAnswer:
        passes = self._alone and self._script.batches_only
        refused = [i for i, key in enumerate(keys) if key in self._script.refused and not passes]
        code = self._script.refused[keys[refused[0]]] if refused else 0
        lost = refused if self._alone or not refused else list(range(len(keys)))
        taken = [key for i, key in enumerate(keys) if i not in lost]
        self._script.taken += taken
        self._delivered += len(taken)
        return PieceAnswer(0, len(lost), code, lost[0] if lost else 0, sizes[lost[0]] if lost else 0, 0)

    def close(self) -> None:
        self._script.open -= 1


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    made = Script()
    monkeypatch.setattr(dead_letter, "open_sender", made.open_sender)
    yield made
    assert made.open == 0


@pytest.fixture
def letters(script: Script) -> Iterator[Callable[..., DeadLetters]]:
    made: list[DeadLetters] = []

    def make(**limits: float) -> DeadLetters:
        made.append(DeadLetters({}, "dead", **{"bytes_max": WINDOW_BYTES, "silence_s": 0.05, **limits}))
        return made[-1]

    yield make
    for one in made:
        one.close()


def held(count: int, *, first: int = 0, topic: str = "t", size_bytes: int = SIZE_BYTES) -> HeldRejects:
    return held_at(range(first, first + count), topic=topic, size_bytes=size_bytes)


def held_at(places: Iterable[int], *, topic: str = "t", size_bytes: int = SIZE_BYTES) -> HeldRejects:
    offsets = np.array(list(places), dtype=np.int64)
    count = len(offsets)
    batch = RawBatch(
        partition=SourcePartition(topic, 0),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of([b"x" * size_bytes] * count),
    )
    return HeldRejects.of(batch, Rejects.of(dict.fromkeys(range(count), "bad"), offsets))


def keys(*offsets: int, topic: str = "t") -> list[str]:
    return [f"{topic}-0-{offset}" for offset in offsets]


def test_no_more_is_on_its_way_than_the_window_holds_and_a_larger_record_is_there_alone(
    script: Script, letters: Callable[..., DeadLetters]
) -> None:
    letters().send([held(100), held(1, topic="u", size_bytes=2 * WINDOW_BYTES), held(1, first=100)])
    assert all(len(piece) <= 4 for piece in script.sent)
    assert script.taken == [*keys(*range(100)), *keys(0, topic="u"), *keys(100)]
    assert script.on_way_bytes_max == 2 * WINDOW_BYTES + dead_letter.RECORD_BYTES
    script.on_way_bytes_max = 0
    letters().send([held(100)])
    assert script.on_way_bytes_max == WINDOW_BYTES


def test_every_answer_is_told_to_whoever_waits(script: Script, letters: Callable[..., DeadLetters]) -> None:
    told: list[int] = []
    letters().send([held(40)], told.append)
    assert sum(told) == 40 and len([some for some in told if some]) >= 10


def test_a_broker_that_stops_answering_keeps_what_it_has_and_gets_only_the_rest(
    script: Script, letters: Callable[..., DeadLetters]
) -> None:
    out = letters()
    script.answers = 3
    with pytest.raises(DeadLetterUnavailable, match=r"dead has taken no rejected record for 0 s.*leader"):
        out.send([held(40)])
    assert script.taken == keys(*range(12))
    script.answers = 10**9
    out.send([held(50)])
    assert sorted(script.taken, key=lambda key: int(key[4:])) == keys(*range(50))
    assert sum(map(len, script.sent)) == 50


@pytest.mark.parametrize(("durable", "left"), [(0, 3), (11, 3), (12, 2), (15, 2), (16, 1), (21, 0)])
def test_what_the_topic_has_is_left_out_by_its_offset_and_offsets_may_have_gaps(
    script: Script, letters: Callable[..., DeadLetters], durable: int, left: int
) -> None:
    out = letters()
    if durable:
        out.send([held(1, first=durable - 1)])
    script.sent.clear()
    out.send([held_at([11, 15, 20]), held(1, topic="u")])
    assert [key for piece in script.sent for key in piece] == [
        *keys(*[11, 15, 20][3 - left :]),
        *keys(0, topic="u"),
    ]


class GivenUpError(Exception):
    pass


def test_what_is_on_its_way_when_a_transaction_is_given_up_is_not_sent_again_with_the_next(
    script: Script, letters: Callable[..., DeadLetters]
) -> None:
    out, script.answers = letters(silence_s=60.0), 1

    def step(taken: int) -> None:
        if not taken:
            raise GivenUpError

    with pytest.raises(GivenUpError):
        out.send([held(8)], step)
    script.answers = 10**9
    out.send([held(8, first=4)])
    assert script.sent == [keys(0, 1, 2, 3), keys(4, 5, 6, 7), keys(8, 9, 10, 11)]


def test_what_lies_behind_a_piece_that_failed_and_was_given_up_is_sent_again_with_it(
    script: Script, letters: Callable[..., DeadLetters]
) -> None:
    """Nothing else says that the failed one is missing."""
    out, script.answers = letters(silence_s=60.0), 0

    def step(taken: int) -> None:
        raise GivenUpError

    with pytest.raises(GivenUpError):
        out.send([held(8)], step)
    script.answers, script.refused = 10**9, {"t-0-0": KafkaError._MSG_TIMED_OUT}
    out.send([])
    script.refused = {}
    out.send([held(8)])
    assert set(keys(*range(8))) <= set(script.taken)
    assert script.sent[2:] == [keys(0, 1, 2, 3), keys(4, 5, 6, 7)]


def test_a_refused_batch_is_sent_again_record_by_record_and_later_ones_are_smaller(
    script: Script, letters: Callable[..., DeadLetters]
) -> None:
    """All that was on its way then makes them smaller once."""
    script.refused = {"t-0-1": KafkaError.MSG_SIZE_TOO_LARGE, "t-0-5": KafkaError.MSG_SIZE_TOO_LARGE}
    script.batches_only = True
    letters().send([held(40)])
    assert script.alone == [keys(0, 1, 2, 3), keys(4, 5, 6, 7)]
    assert script.batch_bytes == [1_000_000, 250_000]
    assert sorted(script.taken) == sorted(keys(*range(40)))


def test_only_a_record_that_is_refused_alone_is_named_with_its_own_topic(
    script: Script, letters: Callable[..., DeadLetters]
) -> None:
    script.refused = {"orders-1-0-2": KafkaError.MSG_SIZE_TOO_LARGE}
    out = letters()
    with pytest.raises(DeadLetterRefused, match=r"orders-1-0-2 \(.*larger than the dead-letter topic dead"):
        out.send([held(4, topic="orders"), held(4, topic="orders-1")])
    assert script.taken == [*keys(0, 1, 2, 3, topic="orders"), *keys(0, 1, 3, topic="orders-1")]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._MSG_TIMED_OUT, DeadLetterUnavailable),
        (KafkaError.NOT_ENOUGH_REPLICAS, DeadLetterUnavailable),
        (KafkaError._UNKNOWN_TOPIC, DeadLetterUnavailable),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, DeadLetterRefused),
        (KafkaError.INVALID_RECORD, DeadLetterRefused),
        (KafkaError._FATAL, DeadLetterError),
    ],
)
def test_what_the_broker_is_to_blame_for_may_pass_and_what_the_topic_forbids_does_not(
    script: Script, letters: Callable[..., DeadLetters], code: int, kind: type[DeadLetterError]
) -> None:
    script.refused = {"t-0-1": code}
    with pytest.raises(DeadLetterError, match=r"their offsets do not move|Its offset does not move") as why:
        letters().send([held(3)])
    assert type(why.value) is kind
    assert "the dead-letter topic dead" in str(why.value)


def test_the_window_grows_while_answers_are_quick_and_shrinks_once_for_all_that_was_on_its_way() -> None:
    window = Window(16 * FIRST_BYTES, quick_s=1.0, slow_s=5.0)
    assert window.size_bytes == FIRST_BYTES
    for now_s in range(1, 10):
        window.answered(now_s, now_s + 0.5)
    assert window.size_bytes == 16 * FIRST_BYTES
    window.answered(20.0, 23.0)
    assert window.size_bytes == 16 * FIRST_BYTES, "neither quick nor slow"
    for _ in range(5):
        window.answered(30.0, 36.0)
    assert window.size_bytes == 8 * FIRST_BYTES
    for sent_s in range(40, 400, 10):
        window.answered(sent_s, sent_s + 9.0)
    assert window.size_bytes == FIRST_BYTES
    assert Window(1_000, quick_s=1.0, slow_s=5.0).size_bytes == 1_000


def test_letters_name_their_run_also_those_that_are_sent_alone(
    script: Script, letters: Callable[..., DeadLetters]
) -> None:
    out = letters(run="run-1")
    out.send([held(3)])
    assert script.runs == {"run-1"}
    script.refused, script.batches_only = {"t-0-4": KafkaError.MSG_SIZE_TOO_LARGE}, True
    out.send([held(3, first=3)])
    assert script.alone and script.runs == {"run-1"}
