"""`lockstep broker`'s process: it keeps what it was given, and it never outlives who started it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from lockstep.brokers.local import Broker, BrokerError
from tests.broker_fixture import create_topic

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0
ROOT = Path(__file__).resolve().parents[2]

FOREGROUND = """
import sys
from pathlib import Path
from lockstep.brokers.local import Broker
from lockstep.launch.local_server import run_in_foreground
run_in_foreground(Broker(Path(sys.argv[1])), lambda b: print(b.pid, b.bootstrap_servers, flush=True))
print("left", flush=True)
"""


def await_that(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def start_foreground(data_dir: Path) -> tuple[subprocess.Popen[str], int, str]:
    process = subprocess.Popen(
        [sys.executable, "-c", FOREGROUND, str(data_dir)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    pid, servers = process.stdout.readline().split()
    return process, int(pid), servers


def test_records_survive_a_kill_and_a_stop_on_the_same_port(tmp_path) -> None:
    with Broker(tmp_path, heap_mb=512) as broker:
        servers, first_pid = broker.bootstrap_servers, broker.pid
        create_topic(servers, "kept")
        producer = Producer({"bootstrap.servers": servers, "acks": "all"})
        producer.produce("kept", b"v", partition=0)
        assert producer.flush(DEADLINE_S) == 0
        broker.kill()
        assert not alive(first_pid)
        broker.start()
        assert (broker.bootstrap_servers, broker.pid != first_pid) == (servers, True)
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "g"})
        bounds = consumer.get_watermark_offsets(TopicPartition("kept", 0), timeout=DEADLINE_S)
        consumer.close()
        assert bounds == (0, 1)
        pid = broker.pid
    assert not alive(pid)
    with Broker(tmp_path, port=broker.port, heap_mb=512) as again:
        assert again.bootstrap_servers == servers
        assert "kept" in AdminClient({"bootstrap.servers": servers}).list_topics(timeout=DEADLINE_S).topics


def test_a_paused_broker_answers_once_it_is_resumed(tmp_path) -> None:
    with Broker(tmp_path, heap_mb=512) as broker:
        broker.pause()
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        await_that(lambda: Path(f"/proc/{broker.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
        broker.resume()
        assert producer.list_topics(timeout=DEADLINE_S).brokers
        broker.pause()
        started = time.monotonic()
    assert time.monotonic() - started < DEADLINE_S


def test_topics_are_never_made_by_asking_for_them(broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 1500})
    errors: list[object] = []
    producer.produce("nobody-made-this", b"v", on_delivery=lambda error, _: errors.append(error))
    producer.flush(DEADLINE_S)
    assert errors[0] is not None


def test_a_taken_port_is_refused_with_what_to_do(broker, tmp_path) -> None:
    with pytest.raises(BrokerError, match=rf"Port {broker.port} .* give another --port"):
        Broker(tmp_path, port=broker.port).start()


def test_a_data_folder_in_use_is_refused_and_left_as_it_is(broker) -> None:
    properties = broker.log_file.with_name("server.properties")
    before = properties.read_bytes()
    with pytest.raises(BrokerError, match="in use by another broker: end that one"):
        Broker(broker.log_file.parent).start()
    assert properties.read_bytes() == before


def test_a_data_folder_that_kafka_refuses_is_named_with_the_reason(tmp_path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=7\n")
    with pytest.raises(BrokerError, match=r"ended before it answered.*node.id.*broker\.log"):
        Broker(tmp_path, heap_mb=256).start()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_foreground_broker_leaves_in_order_when_asked(tmp_path, number) -> None:
    process, pid, _ = start_foreground(tmp_path)
    with process:
        process.send_signal(number)
        assert process.stdout is not None
        assert process.stdout.read() == "left\n"
        assert process.wait(DEADLINE_S) == 0
    assert not alive(pid)


def test_a_second_signal_ends_a_foreground_broker_that_does_not_answer(tmp_path) -> None:
    process, pid, _ = start_foreground(tmp_path)
    with process:
        process.send_signal(signal.SIGTERM)
        while alive(pid):  # frozen over and over, as one that hangs would be, it never ends in order
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        assert process.wait(DEADLINE_S) == 0


def test_the_broker_ends_when_the_process_that_started_it_is_killed(tmp_path) -> None:
    process, pid, _ = start_foreground(tmp_path)
    with process:
        assert alive(pid)
        process.kill()
    await_that(lambda: not alive(pid))


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_the_broker_ends_when_its_reaper_is_killed(tmp_path) -> None:
    with Broker(tmp_path, heap_mb=512) as broker:
        pid = broker.pid
        reaper = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(reaper, signal.SIGKILL)
        await_that(lambda: not alive(pid))
        assert broker.wait(DEADLINE_S)


def test_a_broker_that_runs_is_not_started_twice_and_one_that_does_not_is_not_paused(
    tmp_path, broker
) -> None:
    with pytest.raises(BrokerError, match="runs already"):
        broker.start()
    stopped = Broker(tmp_path)
    with pytest.raises(BrokerError, match="does not run"):
        stopped.pause()
    stopped.stop()
    stopped.kill()
