"""Workers hand rows over to each other by real streams: each row is written once, or all is given up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from control_topic.messages import DataFile
from participant.errors import HandingBroken
from participant.exchange import exchange as module
from participant.exchange.exchange import Exchange, host_towards
from participant.exchange.wire import END, HAND, metadata
from participant.exchange.writer import ExchangingWriter
from table.hudi.files.handing import InsertHanding
from tests.unit.participant.exchange.crew import DAYS, DEADLINE_S, Crew, Given, started
from tests.unit.table.hudi.files.test_base_writer import SCHEMA, read, rows
from tests.unit.table.hudi.files.test_handing import odd


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    with started(tmp_path) as crew:
        yield crew


def at_once(names: tuple[str, ...], do: Callable[[str], Any]) -> dict[str, Any]:
    """What each came to, an error included."""

    def tried(name: str) -> Any:
        try:
            return do(name)
        except (HandingBroken, Given) as error:
            return error

    with ThreadPoolExecutor(len(names)) as pool:
        futures = {name: pool.submit(tried, name) for name in names}
        return {name: future.result(DEADLINE_S) for name, future in futures.items()}


def written(crew: Crew, name: str, count: int, batches: int = 1) -> tuple[ExchangingWriter, Any]:
    writer = crew.writer(name)
    for batch in range(batches):
        writer.write(rows(count, days=DAYS, first=batch * count, topic=name))
    return writer, writer.close()


def check(crew: Crew, done: dict[str, Any], count: int, homes: int = 1) -> None:
    """All rows are there once, table partitions have so many writers, and all counts agree."""
    files = [file for _, of in done.values() for file in of]
    got = sorted(str(row["id"]) for row in read(crew.base, tuple(files)))
    assert got == sorted(f"{name}-{number:06d}" for name in crew.names for number in range(count))
    of_day: dict[str, set[str]] = {}
    for name, (_, own) in done.items():
        for file in own:
            assert isinstance(file, DataFile)
            of_day.setdefault(file.table_partition, set()).add(name)
    assert len(of_day) == DAYS and {len(names) for names in of_day.values()} == {homes}
    for name, (writer, _) in done.items():
        for other, (its, _) in done.items():
            assert writer.handed.get(other, 0) == its.taken.get(name, 0)


def test_each_row_is_written_once_and_each_table_partition_by_one_worker(crew: Crew) -> None:
    done = at_once(crew.names, lambda name: written(crew, name, 1_000))
    check(crew, done, 1_000)


def test_each_table_partition_is_written_by_as_many_workers_as_were_asked_for(tmp_path: Path) -> None:
    with started(tmp_path, homes=2) as crew:
        check(crew, at_once(crew.names, lambda name: written(crew, name, 1_000)), 1_000, homes=2)


def test_workers_whose_queues_are_full_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """Far more rows than all queues hold: everybody sends while nobody takes but who waits to send."""
    with started(tmp_path, bytes_max=8_000) as crew:
        check(crew, at_once(crew.names, lambda name: written(crew, name, 2_000, batches=3)), 6_000)


def test_one_transaction_follows_another_over_the_same_connections(crew: Crew) -> None:
    for transaction in ("t1", "t2", "t3"):

        def close(name: str, transaction: str = transaction) -> int:
            writer = crew.writer(name, transaction)
            writer.write(rows(100, days=DAYS, topic=f"{transaction}{name}"))
            return sum(file.rows for file in writer.close())

        assert sum(at_once(crew.names, close).values()) == 300


def test_a_worker_that_has_read_nothing_writes_what_others_have(crew: Crew) -> None:
    done = at_once(crew.names, lambda name: written(crew, name, 500 if name == "a" else 0, batches=1))
    assert sum(file.rows for _, files in done.values() for file in files) == 500
    assert any(files for name, (_, files) in done.items() if name != "a")


def test_rows_that_come_before_their_taker_has_heard_start_wait_for_it(crew: Crew) -> None:
    early = threading.Event()

    def close(name: str) -> Any:
        writer = crew.writer(name) if name != "c" else None
        if writer is None:
            early.wait(DEADLINE_S)
            return written(crew, name, 1_000)
        writer.write(rows(1_000, days=DAYS, topic=name))
        early.set()
        return writer, writer.close()

    check(crew, at_once(crew.names, close), 1_000)


# --- what ends it ---------------------------------------------------------------------------------


def test_where_one_gives_up_all_others_do(crew: Crew) -> None:
    def close(name: str) -> Any:
        writer = crew.writer(name)
        writer.write(rows(100, days=DAYS, topic=name))
        if name == "b":
            writer.discard()
            return None
        try:
            return writer.close()
        finally:
            writer.discard()

    done = at_once(crew.names, close)
    assert all(isinstance(done[name], HandingBroken) for name in ("a", "c"))
    assert not list(crew.base.rglob("*.parquet"))


def test_where_one_is_gone_all_others_give_up(crew: Crew) -> None:
    writers = {name: crew.writer(name) for name in crew.names}
    for name in ("a", "c"):
        writers[name].write(rows(100, days=DAYS, topic=name))
    crew.exchanges["b"].close()
    done = at_once(("a", "c"), lambda name: writers[name].close())
    assert all(isinstance(error, HandingBroken) for error in done.values())
    for writer in writers.values():
        writer.discard()


def test_who_waits_for_others_can_be_told_to_give_up(crew: Crew) -> None:
    writer = crew.writer("a")
    crew.given_up["a"].set()
    with pytest.raises(Given):
        writer.close()
    writer.discard()


def stream(
    crew: Crew,
    *frames: bytes,
    token: str = "secret",
    transaction: str = "t1",
    sender: str = "b",
    taker: str = "a",
) -> grpc.StatusCode:
    with grpc.insecure_channel(crew.exchanges["a"].address) as channel:
        given = metadata(token, transaction, sender=sender, taker=taker)
        try:
            channel.stream_unary(HAND)(iter(frames), metadata=given, timeout=DEADLINE_S)
        except grpc.RpcError as error:
            assert isinstance(error, grpc.Call)
            return error.code()
    return grpc.StatusCode.OK


def frames_of(count: int) -> list[bytes]:
    return list(InsertHanding(SCHEMA.names).packed([rows(count)], 1 << 20))


def test_without_the_runs_token_nothing_is_taken(crew: Crew) -> None:
    crew.writer("a")
    assert stream(crew, *frames_of(10), END, token="guessed") is grpc.StatusCode.UNAUTHENTICATED


def test_what_is_for_an_earlier_worker_at_this_address_is_refused(crew: Crew) -> None:
    crew.writer("a")
    refused = stream(crew, *frames_of(10), END, taker="z")
    assert refused is grpc.StatusCode.FAILED_PRECONDITION


def test_rows_of_a_transaction_that_is_over_are_refused_at_once(crew: Crew) -> None:
    crew.writer("a").discard()
    crew.writer("a", "t2")
    assert stream(crew, *frames_of(10), END) is grpc.StatusCode.FAILED_PRECONDITION


def test_rows_of_a_transaction_that_never_begins_are_refused(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OPEN_S", 0.2)
    assert stream(crew, *frames_of(10), END, transaction="t9") is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize("sender", ["b", "z", ""])
def test_nobody_hands_over_twice_nor_who_is_no_writer(crew: Crew, sender: str) -> None:
    crew.writer("a")
    if sender == "b":
        assert stream(crew, END) is grpc.StatusCode.OK
    assert stream(crew, *frames_of(10), END, sender=sender) is grpc.StatusCode.FAILED_PRECONDITION


def test_a_stream_without_its_end_has_broken_off(crew: Crew) -> None:
    """A connection that was lost may look like one that was closed."""
    writer = crew.writer("a")
    assert stream(crew, *frames_of(10)) is grpc.StatusCode.ABORTED
    with pytest.raises(HandingBroken, match="broke off"):
        writer.take()
    writer.discard()


def test_what_is_no_rows_ends_the_transaction(crew: Crew) -> None:
    writer = crew.writer("a")
    assert stream(crew, b"nonsense", END) is grpc.StatusCode.OK
    with pytest.raises(HandingBroken, match="no rows of this table"):
        writer.take()
    writer.discard()


def test_where_rows_cannot_be_divided_the_transaction_is_given_up_and_the_worker_goes_on(crew: Crew) -> None:
    """It is written without others next, which may well do."""
    writer = crew.writer("a")
    with pytest.raises(HandingBroken, match="could not be divided"):
        writer.write(odd(100))
    writer.discard()
    writer = crew.writer("a", "t2")
    writer.write(rows(100, days=DAYS))
    writer.discard()


def test_where_rows_cannot_be_packed_the_transaction_is_given_up(crew: Crew) -> None:
    writer = crew.writer("a")
    other = next(who for who in writer._homes.writers if who != "a")
    writer._let_wait(other, rows(10))
    writer._let_wait(other, odd(10))
    with pytest.raises(HandingBroken, match=f"handed over to {other}.*could not be packed"):
        writer.finish(lambda: None)
    writer.discard()


def test_columns_that_others_do_not_know_are_not_handed_over(crew: Crew) -> None:
    writer = crew.writer("a")
    with pytest.raises(HandingBroken, match="other columns"):
        writer.widen(None)
    writer.discard()


def test_more_than_fits_waits_with_its_sender(tmp_path: Path) -> None:
    with started(tmp_path, bytes_max=4_000) as crew:
        writer = crew.writer("a")
        frames = [frame for first in range(0, 3_000, 100) for frame in frames_of(100)]
        done: list[grpc.StatusCode] = []
        sender = threading.Thread(target=lambda: done.append(stream(crew, *frames, END)))
        sender.start()
        while sender.is_alive():
            assert writer._inbox._held_bytes <= max(map(len, frames)) + 4_000
            writer.take()
        writer.take()
        assert done == [grpc.StatusCode.OK] and writer.taken == {"b": 3_000}
        writer.discard()


@pytest.mark.parametrize("workers", [2, 10, 100])
@pytest.mark.parametrize("bytes_max", [1 << 20, 16 << 20, 1 << 30])
def test_what_is_held_beside_what_is_counted_is_bounded_however_many_workers_there_are(
    workers: int, bytes_max: int
) -> None:
    assert workers * module.frame_bytes(bytes_max, workers) <= bytes_max


def test_a_worker_listens_where_it_reaches_the_driver_from() -> None:
    assert host_towards("127.0.0.1:7077") == "127.0.0.1"


def test_an_address_that_is_not_here_cannot_be_listened_on() -> None:
    with pytest.raises(OSError, match="no worker can hand rows over"):
        Exchange(
            incarnation="a",
            token="t",
            host="203.0.113.7",
            writers_max=2,
            homes=1,
            bytes_max=1_000,
            arrived=lambda: None,
        )


def test_files_are_named_so_that_no_two_workers_meet(crew: Crew) -> None:
    done = at_once(crew.names, lambda name: written(crew, name, 100))
    paths = [file.path for _, files in done.values() for file in files]
    assert len(set(paths)) == len(paths)
