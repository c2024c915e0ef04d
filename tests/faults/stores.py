"""What an S3 server does to those whose table is there: it dies, stands still, asks for less, fails, and does
not say that it has done what it was asked for.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from lockstep.stores.local import ACCESS_KEY, S3Server
from table.hudi.driver.watchdog import STANDS
from table.store.objects.requests import Request
from tests.faults.acts import (
    CALM_PER_SECOND,
    GOES_ON_S,
    assert_said,
    halts,
    hold,
    plain,
    proved,
)
from tests.faults.blows import Victim, start_store
from tests.faults.commits import wall_ms
from tests.faults.kills import killed_at
from tests.faults.pauses import paused
from tests.faults.scenario import ON_S3, Notes, Outcome, Scenario, put
from tests.faults.stage import Stage
from tests.faults.steps import AIMED, Step
from tests.harness import event
from tests.place import SUCCESSOR, Bucket, place_on
from tests.s3_proxy import Blow, Lasting, S3Proxy

FROZEN_S = 20.0
"""Less than a request may take, which is so asked for once; and what is held still is held."""
SLOW_S = 60.0
FAILS_S = 90.0
"""Longer than a request is asked for again."""
LOST_S = 60.0
REFUSED_S = 30.0
FULL_S = 45.0
AWAY_S = 60.0
BUDGET_S = 600
"""For so long an outage is waited out."""
RESTARTED_LIMIT_S = 30.0
THAWED_LIMIT_S = 20.0
GOES_ON_LIMIT_S = 60.0

ENDURED = (
    "it is waited out as storage that is away, and commits go on by themselves; a driver that it meets "
    "inside the table lock is ended by its guardian before its lease could be over, and the next run goes on"
)

PUTS = (Request.PUT, Request.PUT_IF)
WRITES = (*PUTS, Request.UPLOAD, Request.PART, Request.COMPLETE)
ALL = tuple(Request)
LARGE_NOTE_BYTES = 900
LARGE_RECORDS = 40_000
LARGE_FILES = {
    "transaction.interval": "5s",
    "storage.part_size": "5MiB",
}
"""So that a transaction has files of several parts."""


@contextmanager
def behind_a_proxy(stage: Stage) -> Iterator[None]:
    """All that the pipeline asks of the server goes through `stage.proxy`. Before anything is started."""
    assert stage.server is not None
    with S3Proxy(stage.server.port) as stage.proxy:
        stage.pipeline.bucket = place_on(stage.server, endpoint=stage.proxy.endpoint)
        yield
        stage.close()


@contextmanager
def _struck(
    stage: Stage, *, blow: Blow, requests: Collection[Request] = ALL, under: str = "", every: int = 1
) -> Iterator[Notes]:
    """Requests through the proxy. See `Lasting`."""
    assert stage.proxy is not None
    notes: Notes = {}
    with stage.proxy.lasting(Lasting(blow=blow, requests=requests, under=under, every=every)) as lasting:
        yield notes
    assert lasting.struck, f"no request was met that has to do with {under!r}"
    notes["requests_struck"] = sum(lasting.struck.values())


@contextmanager
def _keys_in_a_file(stage: Stage) -> Iterator[None]:
    """As `behind_a_proxy`, and the keys are a profile's."""
    assert isinstance(stage.server, S3Server)
    with S3Proxy(stage.server.port) as stage.proxy:
        profiles = stage.pipeline.folder / "credentials"
        stage.pipeline.bucket = Bucket(stage.server, endpoint=stage.proxy.endpoint, profiles=profiles)
        stage.pipeline.bucket.write_profile(ACCESS_KEY)
        yield
        stage.close()


@contextmanager
def _taken_back(stage: Stage, *, status: int, code: str, late: bool) -> Iterator[Notes]:
    """The keys in use are refused from now on, and others are in their place: at once, or when it is over."""
    assert stage.proxy is not None and stage.pipeline.bucket is not None
    stage.proxy.refused[ACCESS_KEY] = (status, code)
    if not late:
        stage.pipeline.bucket.write_profile(SUCCESSOR)
    yield {}
    if late:
        stage.pipeline.bucket.write_profile(SUCCESSOR)


def _renewed(status: int, code: str, *, late: bool) -> partial[Outcome]:
    taken = partial(_taken_back, status=status, code=code, late=late)
    said = ("the credentials have ended (ExpiredToken)",) if late else ()
    return partial(outlives, during=taken, seconds=REFUSED_S, on=_keys_in_a_file, said=said)


def _narrowed(*requests: Request) -> partial[Outcome]:
    """Of these kinds all are refused, and none else."""
    narrowed = partial(_struck, blow=Blow.REFUSE, requests=requests)
    said = ("the policy must allow",)
    return partial(outlives, during=narrowed, seconds=REFUSED_S, on=behind_a_proxy, said=said)


def _full(blow: Blow) -> partial[Outcome]:
    full = partial(_struck, blow=blow, requests=WRITES)
    return partial(outlives, during=full, seconds=FULL_S, on=behind_a_proxy, said=("takes no more",))


@contextmanager
def away(stage: Stage) -> Iterator[Notes]:
    assert stage.server is not None
    stage.server.kill()
    yield {}
    start_store(stage)


def outlives(
    stage: Stage,
    *,
    during: Callable[[Stage], AbstractContextManager[Notes]],
    seconds: float,
    on: Callable[[Stage], AbstractContextManager[object]] = nullcontext,
    said: tuple[str, ...] = (),
) -> Outcome:
    """A pipeline under load meets what lasts a while, and commits go on; time from its end. `said`: there.

    A driver that is inside the table lock for all the time is ended by its guardian, and started again here.
    """
    with on(stage):
        stage.start(per_second=CALM_PER_SECOND)
        began_ms = wall_ms()
        with during(stage) as notes:
            hold(seconds)
        over_ms = wall_ms()
        assert_said(stage.pipeline.runs[0], said)
        notes["commits_meanwhile"] = len(stage.commits_after(began_ms))
        if stage.current.process.poll() is not None:
            assert_said(stage.current, [STANDS])
            notes["ended_by_its_guardian"] = "yes"
            over_ms = wall_ms()
            stage.restart()
        recovery_s = stage.recovery_s(over_ms, deadline_s=GOES_ON_S)
        outcome = proved(stage, stage.current, recovery_s=recovery_s, **notes)
        plain(stage.pipeline.runs[0])
        return outcome


def answered(blow: Blow, seconds: float) -> partial[Outcome]:
    """All requests."""
    return partial(outlives, during=partial(_struck, blow=blow), seconds=seconds, on=behind_a_proxy)


def lost(under: str, *, every: int = 0, requests: Collection[Request] = PUTS) -> partial[Outcome]:
    """Answers to puts of objects there. `every`: see `Lasting`."""
    struck = partial(_struck, blow=Blow.LOSE, requests=requests, under=under, every=every)
    return partial(outlives, during=struck, seconds=LOST_S, on=behind_a_proxy)


def _parts_fail(stage: Stage) -> Outcome:
    """Of files of several parts, the first may be there, and the others are refused for a while."""
    with behind_a_proxy(stage):
        assert stage.proxy is not None
        run = stage.start(per_second=CALM_PER_SECOND)
        stage.stop_load()
        with stage.proxy.lasting(Lasting(blow=Blow.FAIL, requests=(Request.PART,))) as lasting:
            produce_large(stage)
            hold(FAILS_S)
        over_ms = wall_ms()
        assert lasting.struck, "no file had several parts"
        stage.start_load(per_second=CALM_PER_SECOND)
        recovery_s = stage.recovery_s(over_ms, deadline_s=GOES_ON_S)
        notes = {"files_struck": len(lasting.struck), "requests_struck": sum(lasting.struck.values())}
        return proved(stage, run, recovery_s=recovery_s, **notes)


def produce_large(stage: Stage) -> None:
    """Records of one day, which no compression makes small."""
    pipeline = stage.pipeline
    each = LARGE_RECORDS // pipeline.partitions
    for partition in range(pipeline.partitions):
        first = pipeline.produced + partition * each
        notes = (base64.b64encode(os.urandom(LARGE_NOTE_BYTES)).decode() for _ in range(each))
        values = [event(3 * (first + index), note=note) for index, note in enumerate(notes)]
        pipeline.produce_raw(values, partition=partition)
    pipeline.produced += each * pipeline.partitions


def words(step: Step) -> str:
    return "_".join(step.value.lower().replace(",", "").replace("-", "_").split())


def struck_at_each_step(name: str, server: str, *, more_s: float = 0.0) -> Iterator[Scenario]:
    """Killed and started again, and stopped for a while. `server`: in words; `more_s`: than S3's is given."""
    for step in AIMED:
        yield Scenario(
            f"{name}_killed_at_{words(step)}",
            f"SIGKILL of {server}, which is started again at once: {step.value}",
            "what could not be written or said is asked for again, and nothing is taken for done that is not",
            partial(killed_at, victim=Victim.STORE, step=step),
            RESTARTED_LIMIT_S + more_s,
        )
    yield from frozen_at_each_step(name, server, more_s=more_s)


def frozen_at_each_step(name: str, server: str, *, more_s: float = 0.0) -> Iterator[Scenario]:
    """The latter alone: of a server that keeps in memory what it was given."""
    for step in AIMED:
        yield Scenario(
            f"{name}_frozen_at_{words(step)}",
            f"{server} is stopped for {FROZEN_S:.0f} s, then goes on: {step.value}",
            "everybody waits for it, and goes on by himself",
            partial(paused, victim=Victim.STORE, step=step, seconds=FROZEN_S, restarts=None),
            THAWED_LIMIT_S + more_s,
        )


def fails_in_the_middle_of_files(name: str) -> Scenario:
    return Scenario(
        f"{name}_fails_in_the_middle_of_files",
        f"for {FAILS_S:.0f} s parts of files that are uploaded in parts are answered 500",
        "workers whose files cannot be written are replaced, which is waited out as the storage's fault; "
        "nothing half-written is ever read, and no part is left behind",
        _parts_fail,
        GOES_ON_LIMIT_S,
        settings=LARGE_FILES,
    )


def unanswered(name: str) -> Iterator[Scenario]:
    """What was asked for is carried out, and nobody is told."""
    yield Scenario(
        f"{name}_answers_lost_for_the_timeline",
        f"for {LOST_S:.0f} s the first put of each file of the timeline is carried out, and its answer lost",
        "what has landed is found to have landed; no instant is completed twice, nor taken for lost",
        lost("/.hoodie/timeline/"),
        GOES_ON_LIMIT_S,
    )
    yield Scenario(
        f"{name}_answers_lost_for_what_decides",
        f"for {LOST_S:.0f} s the answer is lost to the put that decides whether an instant is completed",
        "whoever has decided is found by the mark of the put, and commits go on",
        lost("/.hoodie/.lockstep/decided/"),
        GOES_ON_LIMIT_S,
    )
    yield Scenario(
        f"{name}_answers_lost_for_the_table_lock",
        f"for {LOST_S:.0f} s every third answer to a put of the table lock is lost",
        "the lock itself says whose it is, and commits go on",
        lost("/.hoodie/.locks/", every=3),
        GOES_ON_LIMIT_S,
    )


put(
    "S3",
    *struck_at_each_step("s3_server", "the S3 server"),
    Scenario(
        "s3_asks_for_less_for_60_s",
        f"for {SLOW_S:.0f} s every request to S3 is answered 503 SlowDown",
        ENDURED,
        answered(Blow.SLOW_DOWN, SLOW_S),
        GOES_ON_LIMIT_S,
    ),
    Scenario(
        "s3_refuses_for_30_s",
        f"for {REFUSED_S:.0f} s every request to S3 is answered 403 AccessDenied",
        "it is waited out as storage that cannot be written, and commits go on by themselves",
        answered(Blow.REFUSE, REFUSED_S),
        GOES_ON_LIMIT_S,
    ),
    *(
        Scenario(
            f"s3_does_not_allow_to_{name}",
            f"for {REFUSED_S:.0f} s the policy does not allow to {name}, and all else: 403 AccessDenied",
            "it is waited out as storage that cannot be used, and commits go on by themselves",
            _narrowed(*requests),
            GOES_ON_LIMIT_S,
        )
        for name, requests in (
            ("get", (Request.GET, Request.HEAD)),
            ("put", WRITES),
            ("delete", (Request.DELETE, Request.DELETE_MANY)),
            ("list", (Request.LIST, Request.LIST_UPLOADS)),
        )
    ),
    *(
        Scenario(
            f"s3_full_{name}",
            f"for {FULL_S:.0f} s the bucket takes no more: {said}",
            "it is waited out as storage that cannot be written, and commits go on by themselves",
            _full(blow),
            GOES_ON_LIMIT_S,
        )
        for name, blow, said in (
            ("507", Blow.FULL, "507 InsufficientStorage"),
            ("quota", Blow.QUOTA, "403 QuotaExceeded"),
        )
    ),
    Scenario(
        "s3_keys_taken_back",
        "the keys of a profile are refused, 403 InvalidAccessKeyId, and its file has others",
        "workers and driver take the others by themselves",
        _renewed(403, "InvalidAccessKeyId", late=False),
        GOES_ON_LIMIT_S,
    ),
    Scenario(
        "s3_keys_ended_and_renewed_late",
        f"the keys of a profile are refused, 400 ExpiredToken; {REFUSED_S:.0f} s later its file has others",
        "it is waited out as storage that cannot be used, and commits go on with the others by themselves",
        _renewed(400, "ExpiredToken", late=True),
        GOES_ON_LIMIT_S,
    ),
    Scenario(
        "s3_away_for_60_s",
        f"the S3 server is gone for {AWAY_S:.0f} s",
        ENDURED,
        partial(outlives, during=away, seconds=AWAY_S),
        GOES_ON_LIMIT_S,
    ),
    Scenario(
        "s3_away_for_good",
        "the S3 server is gone for longer than an outage is waited out",
        "the run halts and says so; with the server there again, the next run loses nothing",
        partial(
            halts,
            during=away,
            said=("an outage is waited out for 600 s",),
            deadline_s=BUDGET_S + 240,
            per_second=CALM_PER_SECOND // 4,
        ),
    ),
    fails_in_the_middle_of_files("s3"),
    *unanswered("s3"),
    stores=ON_S3,
)
