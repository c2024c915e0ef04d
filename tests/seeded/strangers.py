"""Who may write to the control topic, or reaches a port of the driver's: believed, or heard out."""

from __future__ import annotations

import queue
from typing import Any

from tests.seeded.base import Bug, of
from tests.seeded.holes import Hole

BOUNDS = "tests/unit/control_topic/test_bounds.py"
OBSERVER = "tests/unit/lockstep/watch/test_observer.py"
TRUST = "tests/unit/control_topic/test_trust.py"
ON_A_BROKER = "tests/integration/test_control_topic_strangers.py"


def read_before_it_is_believed(right: Any) -> Any:
    def receive(receiver: Any, *, offset: int, time_ms: int, raw: Any, mac: Any = None) -> Any:
        if receiver._trust is not None and not receiver._trust.authentic(raw, mac):
            receiver._decoder.feed(raw)
        return right(receiver, offset=offset, time_ms=time_ms, raw=raw, mac=mac)

    return receive


def of_any_name(_right: Any) -> Any:
    return lambda name: name


def whole(_right: Any) -> Any:
    return lambda text, _chars_max: text.encode("utf-8", "replace").decode("utf-8")


def of_any_size(_right: Any) -> Any:
    return lambda body: None


def caught_up_for_good(right: Any) -> Any:
    def note_end_reached(observer: Any, reader: Any) -> None:
        reader.caught_up = True
        right(observer, reader)

    return note_end_reached


def of_text(right: Any) -> Any:
    def headers_of(record: Any) -> Any:
        found = right(record)
        if found is None:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return found

    return headers_of


def read_committed(right: Any) -> Any:
    return lambda settings, **given: right({**settings, "isolation.level": "read_committed"}, **given)


def in_peace_only(_right: Any) -> Any:
    def next_event(runner: Any) -> Any:
        from coordinator.events import Tick
        from coordinator.runner import TICK_S

        try:
            return runner._events.get(timeout=TICK_S)()
        except queue.Empty:
            return Tick(now_ms=runner._env.now_ms(), nonce=runner._env.nonce())

    return next_event


def read_whole(right: Any) -> Any:
    def init(check: Any, token: str) -> None:
        import grpc

        from table.service.server import _refuse

        right(check, token)
        check._refusal = grpc.unary_unary_rpc_method_handler(_refuse)

    return init


def open_to_everybody(_right: Any) -> Any:
    def start_callbacks(gateway: Any) -> None:
        from py4j.java_gateway import JavaObject

        if gateway.__dict__.get("_callback_server") is not None:
            return
        parameters = gateway.callback_server_parameters
        parameters.eager_load = parameters.daemonize = parameters.daemonize_connections = True
        parameters.port = 0
        gateway.start_callback_server(parameters)
        port = gateway._callback_server.server_socket.getsockname()[1]
        gateway._callback_server.port = gateway._python_proxy_port = port
        server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
        server.resetCallbackClient(server.getCallbackClient().getAddress(), port)

    return start_callbacks


def with_growing_windows(right: Any) -> Any:
    return tuple(option for option in right if "bdp" not in option[0])


BUGS = (
    Bug(
        "a_topic_has_any_name",
        "A source topic's name on the control topic is of any length, and is kept by whoever reads it.",
        Hole.STRANGERS,
        {"control_topic.values:topic_name": of_any_name},
        of(BOUNDS, "test_a_topic_that_kafka_does_not_allow_is_neither_written_nor_read"),
    ),
    Bug(
        "what_people_read_is_of_any_length",
        "Why a run halts or a transaction is aborted is kept whole by whoever reads it.",
        Hole.STRANGERS,
        {"control_topic.codec:cut": whole},
        of(BOUNDS, "test_what_people_read_is_cut_by_who_writes_it_and_by_who_reads_it"),
    ),
    Bug(
        "what_a_body_becomes_is_seen_when_it_is_there",
        "A body's entries are counted when protobuf has made fifty bytes of each two.",
        Hole.STRANGERS,
        {"control_topic.codec:check_size": of_any_size},
        of(BOUNDS, "test_a_text_of_megabytes_is_refused_before_it_is_parsed"),
    ),
    Bug(
        "a_topic_that_was_read_once_is_fresh_for_good",
        "However far a reader has fallen behind, the control topic was looked at just now.",
        Hole.STRANGERS,
        {"lockstep.watch.observer:Observer._note_end_reached": caught_up_for_good},
        of(OBSERVER, "test_the_topic_was_looked_at_when_that_was_asked_up_to_which_it_was_read"),
    ),
    Bug(
        "what_nobody_has_marked_is_read",
        "A record is parsed, and kept as a part of a larger message, before anybody looks at its mark.",
        Hole.STRANGERS,
        {"control_topic.transport:Receiver.receive": read_before_it_is_believed},
        of(TRUST, "test_what_is_not_trusted_takes_no_room_among_the_parts_of_large_messages"),
    ),
    Bug(
        "any_epoch_is_somebodys",
        "An epoch is learned however far it leads the table's: one message uses them up.",
        Hole.STRANGERS,
        {"control_topic.trust:Trust.within_reach": lambda _right: lambda trust, epoch: True},
        of(TRUST, "test_an_epoch_far_beyond_the_tables_is_nobodys_whoever_says_it"),
    ),
    Bug(
        "a_header_of_odd_bytes_ends_the_reader",
        "A header whose name is no text is an error of whoever reads the control topic.",
        Hole.STRANGERS,
        {"control_topic.kafka:headers_of": of_text},
        of(ON_A_BROKER, "test_a_header_whose_name_is_no_text_is_no_mark_and_ends_no_reader"),
        raises={"builtins.UnicodeDecodeError": "invalid start byte"},
    ),
    Bug(
        "time_stands_still_under_a_flood",
        "The coordinator's time goes on when nothing comes, and under a flood of messages not at all.",
        Hole.STRANGERS,
        {"coordinator.runner:Runner._next_event": in_peace_only},
        of(
            "tests/unit/coordinator/test_runner.py",
            "test_time_goes_on_while_messages_come_more_often_than_ticks",
        ),
    ),
    Bug(
        "a_call_is_read_before_its_token",
        "A call of the table service is refused when all of its message is in memory.",
        Hole.STRANGERS,
        {"table.service.server:TokenCheck.__init__": read_whole},
        of(
            "tests/unit/table/service/test_server.py",
            "test_a_strangers_large_messages_are_refused_before_they_are_read",
        ),
    ),
    Bug(
        "a_call_may_run_ahead_of_its_token",
        "Before its token is looked at, a call may send ever more, as gRPC lets a quick sender.",
        Hole.STRANGERS,
        {"table.service.server:SERVER_OPTIONS": with_growing_windows},
        of(
            "tests/unit/table/service/test_server.py",
            "test_a_strangers_calls_on_one_connection_get_no_larger_windows_by_and_by",
        ),
    ),
    Bug(
        "the_callback_port_asks_for_no_token",
        "Any user of the machine may call the driver's Python objects.",
        Hole.STRANGERS,
        {"table.hudi.driver.callbacks:start_callbacks": open_to_everybody},
        of(
            "tests/unit/table/hudi/driver/test_callbacks.py",
            "test_a_stranger_on_the_callback_port_calls_nothing_and_hears_nothing",
        ),
    ),
    Bug(
        "a_page_shows_pipelines_of_other_tokens",
        "One page of several pipelines asks for the first one's token, and shows all of them.",
        Hole.STRANGERS,
        {"lockstep.commands.ui:readable": lambda _right: lambda configs, _output: [*configs]},
        of(
            "tests/unit/lockstep/config/test_ui_section.py",
            "test_a_pipeline_is_shown_only_to_readers_who_show_its_own_token",
        ),
    ),
)
