"""One run of the application in the driver: table, table service, announcement, workers, and the end."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from control_topic.clocks import monotonic_ms, wall_ms
from control_topic.kafka import ControlTopic
from control_topic.messages import Control, Offsets, RunAnnounce
from control_topic.trust import KEY_BYTES
from lockstep.brokers.dead_letter_topics import DeadLetterTopics
from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config
from lockstep.config.tuning import objection, tuning_of
from lockstep.driver.announcer import Announcer
from lockstep.driver.capacity import check_slots, free_slots
from lockstep.driver.earlier_commits import earlier_commits
from lockstep.driver.group_watch import GroupWatch
from lockstep.driver.hooks_of import ending_of, telling
from lockstep.driver.run_observer import RunObserver
from lockstep.driver.run_page import RunPage
from lockstep.driver.rundir import remove_run_file, write_run_file
from lockstep.driver.source_watch import SourceWatch
from lockstep.driver.storage_use import check_use
from lockstep.driver.supervisor import Supervisor, SupervisorLimits
from lockstep.driver.topic_keeper import TopicKeeper
from lockstep.errors import Failed
from lockstep.launch.submit import is_local
from participant.rejects_max import RejectsMax
from participant.worker.spec import WorkerSpec
from table.kinds import table_kind
from table.port import UPSERT, TableLayout
from table.service import ledger as table_ledger
from table.service.place import Place
from table.service.progress import Progress
from table.service.roster import LIVES_MS
from table.service.server import serve
from table.service.servicer import TableService

log = logging.getLogger("lockstep.run")

BACKOFF_MAX_MS = 5_000
"""A dead driver's table lock expires after a minute: what waits for it should not wait much longer."""
OPEN_S = 300
CONTROL_TOPIC_S = 30
WATCH_S = 10.0
"""The most that one look at the consumer group waits for an answer."""
CLOSE_S = 30
START_S = 120.0
"""From the start of a worker's task to its first report: ten times what a loaded machine takes."""
DEATHS_EXTRA = 3
"""Worker deaths allowed without a commit, beyond max_consecutive_failures and one for each worker."""


class Application:
    """`kafka`: librdkafka properties with secrets resolved. `path`, `sets`: what `config` was read from."""

    def __init__(
        self,
        spark: SparkSession,
        config: Config,
        kafka: Mapping[str, str],
        *,
        log_level: str,
        run_id: str = "",
        path: Path | None = None,
        sets: Sequence[str] = (),
    ) -> None:
        self._spark = spark
        self._config = config
        self._kafka = dict(kafka)
        self._log_level = log_level
        self.run_id = run_id or secrets.token_hex(8)
        self._token = secrets.token_urlsafe(32)
        self._key = secrets.token_bytes(KEY_BYTES)
        self._path, self._sets = path, tuple(sets)
        self._service: TableService | None = None
        self._stop_reason = ""
        self._announcer: Announcer | None = None

    def _ordered(self, control: Control) -> None:
        """For people who look at the control topic. An order that comes before the run has announced itself
        is in its log and status only.
        """
        if self._announcer is not None:
            self._announcer.say(control)

    def request_stop(self, reason: str) -> None:
        """Commit what is open and end. Safe from any thread, and as soon as there is something to end."""
        self._stop_reason = self._stop_reason or reason
        if self._service is not None:
            self._service.request_stop(reason)

    def run(
        self,
        *,
        until_latest: bool,
        progress: Callable[[Progress], None],
        ending: Callable[[table_ledger.RunOutcome], None],
    ) -> table_ledger.RunOutcome:
        """Run until told to stop, until everything is committed, or until it halts.

        `ending`: told how the run ends, before its workers, the table and Spark are.
        """
        config = self._config
        check_slots(self._spark, config.pipeline.workers)
        storage = config.store_settings()
        if storage is not None:
            check_use(config.table.path, storage)
        source = SourceTopics(self._kafka, config.source.topics)
        facts = source.facts()  # a broker that does not answer, or a missing topic, ends it here
        until = source.end(facts.partitions) if until_latest else None
        ControlTopic(self._kafka, config.control.topic).ensure(timeout_s=CONTROL_TOPIC_S)
        dead_letters = DeadLetterTopics(
            self._kafka,
            config.dead_letter_topics,
            config.source.topics,
            partitions=config.record.dead_letter_partitions,
        )
        dead_letter_bytes = dead_letters.ensure(timeout_s=CONTROL_TOPIC_S)
        with ExitStack() as stack:
            service = stack.enter_context(self._serving(source, until))
            layout = service.open(timeout_s=OPEN_S)
            place = self._take_place(layout)
            server = serve(service, token=self._token, host=self._host())
            stack.callback(server.stop)
            self._leave_run_file(server.address)
            stack.callback(remove_run_file, config.pipeline.id, run=self.run_id)
            announcement = self._announcement(service, server.address)
            announcer = Announcer(
                self._kafka,
                config.control.topic,
                pipeline=config.pipeline.id,
                run=self.run_id,
                key=self._key,
                announcement=announcement,
            )
            stack.callback(announcer.stop)
            announcer.start()
            hooks = stack.enter_context(
                telling(self._spark, config, self._kafka, layout, service, run=self.run_id)
            )
            self._announcer = announcer
            service.clear()  # takes as long as the workers' start, which goes on beside it
            self._keep_watch(stack, service, source, dead_letters, restored=announcer.announce_again)
            observing = self._observed(stack, service)
            supervisor = Supervisor(
                self._spark.sparkContext,
                self._worker_spec(layout, server.address, until, announcement.table_epoch, dead_letter_bytes),
                service,
                place,
                limits=self._limits(),
                log_level=self._log_level,
                progress=progress,
                ending=ending,
            )
            outcome = supervisor.run()
            observing.finish(outcome)
            hooks.finish(ending_of(outcome))
            return outcome

    def _observed(self, stack: ExitStack, service: TableService) -> RunObserver:
        """Its metrics' file and its page, as far as they are wanted."""
        observing = RunObserver(stack, self._config, self._kafka, service)
        observing.keep_file()
        if self._config.ui.enabled:
            page = RunPage(self._config, observing.get(), run=self.run_id)
            stack.callback(page.stop)
            page.start()
        return observing

    def _keep_watch(
        self,
        stack: ExitStack,
        service: TableService,
        source: SourceTopics,
        dead_letters: DeadLetterTopics,
        *,
        restored: Callable[[], None],
    ) -> None:
        """Look after topics and group until the stack is unwound. `restored`: the control topic was."""
        config = self._config
        asked = SourceTopics(self._kafka, config.source.topics, timeout_s=WATCH_S)
        watches = (
            TopicKeeper(self._kafka, config.control.topic, restored=restored),
            dead_letters,
            SourceWatch(source, known=service.seen, halt=service.halt),
            GroupWatch(
                asked,
                config.group_id,
                service=service,
                clock=time.monotonic,
                session_s=_session_s(self._kafka),
            ),
        )
        for watch in watches:
            stack.callback(watch.stop)
            watch.start()

    def _take_place(self, layout: TableLayout) -> Place:
        """Before any worker joins: whoever they drive out of the group finds out by whom."""
        notes = table_kind(layout.kind).notes(layout.path, self._config.store_settings())
        place = Place(notes, pipeline=self._config.pipeline.id, run=self.run_id)
        try:
            place.occupy()
        except OSError as error:
            where = notes.place()
            raise Failed(f"{where} cannot be written: {error.strerror}: see who may write there.") from error
        return place

    @contextmanager
    def _serving(self, source: SourceTopics, until: Offsets | None) -> Iterator[TableService]:
        config = self._config
        service = TableService(
            table=table_kind(config.table.format).committer(
                self._spark,
                config.table_spec(),
                config.pipeline.id,
                services=True,
                free_slots=partial(free_slots, self._spark, config.pipeline.workers),
            ),
            ledger=table_ledger.Ledger(
                run=self.run_id,
                now_ms=monotonic_ms(),
                limits=table_ledger.LedgerLimits(
                    max_consecutive_failures=config.transaction.max_consecutive_failures,
                    backoff_max_ms=BACKOFF_MAX_MS,
                ),
                until=until,
                tuning=tuning_of(config),
            ),
            source=source,
            pipeline=config.pipeline.id,
            run=self.run_id,
            rows_are_records=config.table_spec().mode != UPSERT,
            starting_offsets=config.source.starting_offsets,
            on_data_loss=config.source.on_data_loss,
            rejects_max=RejectsMax.of(config.record.max_rejects).count,
            clock_ms=monotonic_ms,
            workers=config.pipeline.workers,
            objection=partial(objection, config),
            ordered=self._ordered,
            mark_rule=config.mark_rule(),
            earlier_commits=partial(earlier_commits, config, source),
        )
        self._service = service
        if self._stop_reason:
            service.request_stop(self._stop_reason)
        try:
            yield service
        finally:
            if not service.close(timeout_s=CLOSE_S):
                log.warning("the table was still busy after %d s and was left to itself", CLOSE_S)

    def _leave_run_file(self, address: str) -> None:
        """Only `lockstep status` asks for it, and has less to say without."""
        try:
            write_run_file(
                self._config.pipeline.id,
                run=self.run_id,
                address=address,
                token=self._token,
                config=self._path,
                sets=self._sets,
            )
        except OSError as error:
            log.warning(
                "`lockstep status` will not show what this run does: its address could not be left (%s)",
                error,
            )

    def _host(self) -> str:
        """Loopback where the workers are on this machine; else the address that Spark's executors use."""
        if is_local(self._spark.sparkContext.master):
            return "127.0.0.1"
        host = self._spark.sparkContext.getConf().get("spark.driver.host")
        if not host:
            raise Failed(
                "spark.driver.host is not set: workers on other machines could not reach the driver."
            )
        return host

    def _announcement(self, service: TableService, address: str) -> RunAnnounce:
        newest = service.newest(timeout_s=OPEN_S)
        return RunAnnounce(
            address=address, table_epoch=newest.epoch if newest is not None else 0, started_at_ms=wall_ms()
        )

    def _limits(self) -> SupervisorLimits:
        config = self._config
        grace_s = config.sweep_grace_ms / 1_000
        return SupervisorLimits(
            sweep_period_s=max(60.0, grace_s / 2),
            sweep_grace_s=grace_s,
            silence_s=LIVES_MS / 1_000,
            start_s=START_S,
            deaths_max=config.transaction.max_consecutive_failures + config.pipeline.workers + DEATHS_EXTRA,
        )

    def _worker_spec(
        self,
        layout: TableLayout,
        address: str,
        until: Offsets | None,
        table_epoch: int,
        dead_letter_bytes: int,
    ) -> WorkerSpec:
        config = self._config
        return WorkerSpec(
            pipeline=config.pipeline.id,
            run=self.run_id,
            workers=config.pipeline.workers,
            kafka=self._kafka,
            topics=config.source.topics,
            control_topic=config.control.topic,
            table_address=address,
            token=self._token,
            key=self._key,
            table_epoch=table_epoch,
            layout=layout,
            storage=config.store_settings(),
            interval_ms=config.transaction.interval_ms,
            write_timeout_ms=config.transaction.write_timeout_ms,
            write_limit_ms=config.transaction.write_limit_ms,
            schedule=config.transaction.schedule,
            zone=config.transaction.zone,
            align_ms=config.transaction.align_ms,
            homes=config.transaction.writers_per_partition,
            memory_bytes=config.memory.per_worker_bytes,
            records_max=config.transaction.max_records,
            bytes_max=config.transaction.max_bytes,
            on_data_loss=config.source.on_data_loss,
            reader=config.source.reader,
            on_error=config.record.on_error,
            dead_letter_topic=config.record.dead_letter_topic,
            dead_letter_bytes_max=dead_letter_bytes,
            rejects_max=RejectsMax.of(config.record.max_rejects),
            record=config.record_spec(),
            until=until,
            log_format=config.log.format,
        )


def _session_s(kafka: Mapping[str, str]) -> float:
    """What the configuration says of the group's sessions; 0 where it says nothing."""
    given = kafka.get("session.timeout.ms", "")
    return int(given) / 1_000 if given.isdecimal() else 0.0
