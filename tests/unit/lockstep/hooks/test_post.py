"""One POST to a real server: bounded, verified, never sent on, and silent about secrets."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstep.hooks.port import SinkError
from lockstep.hooks.post import Poster
from lockstep.launch.local_server import free_port
from tests.hook_receiver import CUT, DRIP, GARBAGE, HANG, Receiver

SECRET = "correct-horse-battery-staple"
HEADERS = {"Authorization": f"Bearer {SECRET}"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def fails(address: str, *, timeout_s: float = 5.0) -> str:
    with pytest.raises(SinkError) as caught:
        Poster(address, HEADERS, timeout_s=timeout_s).post(b"{}", {})
    shown = str(caught.value)
    assert SECRET not in shown and "hidden-path" not in shown
    return shown


def test_the_body_and_the_headers_arrive_as_they_are(receiver: Receiver) -> None:
    Poster(f"{receiver.url}/a/b?c=d%20e", HEADERS, timeout_s=5).post(b'{"a":1}', {"Idempotency-Key": "t1"})
    (taken,) = receiver.taken
    assert taken.path == "/a/b?c=d%20e" and taken.body == b'{"a":1}'
    assert taken.headers["Authorization"] == f"Bearer {SECRET}"
    assert taken.headers["Idempotency-Key"] == "t1"


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_every_other_answer_is_a_failure_with_its_number(receiver: Receiver, status: int) -> None:
    receiver.does = status
    assert f"last answer {status} (" in fails(f"{receiver.url}/hidden-path")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_to_anybody(receiver: Receiver, status: int) -> None:
    with Receiver() as other:
        receiver.does = status
        receiver.answer_headers["Location"] = f"{other.url}/elsewhere"
        assert "not followed" in fails(receiver.url)
        assert other.asked == 0 and receiver.asked == 1


def test_a_status_that_nobody_knows_is_a_failure(receiver: Receiver) -> None:
    receiver.does = 599
    assert fails(receiver.url) == "last answer 599"


@pytest.mark.parametrize("does", [HANG, DRIP])
def test_a_server_that_does_not_come_to_an_end_is_left(receiver: Receiver, does: str) -> None:
    receiver.does = does
    assert fails(receiver.url, timeout_s=1.0) == "no answer within 1 s"


def test_the_time_for_finding_the_server_counts_too(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server takes longer than all may take, and then the server gives a byte from time to time."""
    receiver.does = DRIP
    create, late = socket.create_connection, threading.Event()

    def slow(*arguments: Any, **more: Any) -> socket.socket:
        late.wait(1.0)
        return create(*arguments, **more)

    monkeypatch.setattr(socket, "create_connection", slow)
    assert fails(receiver.url, timeout_s=0.3) == "no answer within 0 s"
    assert receiver.asked == 0


def test_a_server_that_dawdles_in_the_handshake_is_left() -> None:
    """Every byte comes in time, and there is no end of them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        left = threading.Event()

        def drip() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xf0")  # a long message of a handshake begins
                while not left.wait(0.1):
                    try:
                        peer.sendall(b"\x03")
                    except OSError:
                        return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        try:
            assert (
                fails(f"https://localhost:{server.getsockname()[1]}", timeout_s=1.0) == "no answer within 1 s"
            )
        finally:
            left.set()
            thread.join(10)


@pytest.mark.parametrize("does", [CUT, GARBAGE])
def test_what_is_no_answer_is_a_failure(receiver: Receiver, does: str) -> None:
    receiver.does = does
    assert fails(receiver.url)


def test_nobody_there_is_a_failure() -> None:
    assert fails(f"http://127.0.0.1:{free_port()}/hidden-path") == "Connection refused"


def test_a_name_that_nobody_knows_is_a_failure() -> None:
    assert "name" in fails("http://no-such-host.invalid/hidden-path")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    path = tmp_path / "server.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    done = subprocess.run([*command, "-keyout", "-"], capture_output=True, check=True, timeout=60)
    path.write_bytes(done.stdout)
    return path


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    with Receiver(certificate=certificate) as receiver:
        assert "certificate" in fails(f"https://localhost:{receiver.port}/hidden-path")
        with pytest.raises(SinkError, match="certificate"):
            Poster(f"https://localhost:{receiver.port}", HEADERS, timeout_s=5).connect()
        assert receiver.asked == 0


def test_one_that_the_system_trusts_is_taken_for_its_own_name_only(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with Receiver(certificate=certificate) as receiver:
        Poster(f"https://localhost:{receiver.port}", HEADERS, timeout_s=5).post(b"{}", {})
        Poster(f"https://localhost:{receiver.port}", HEADERS, timeout_s=5).connect()
        assert len(receiver.taken) == 1
        assert "certificate" in fails(f"https://127.0.0.1:{receiver.port}")


def test_to_connect_sends_nothing(receiver: Receiver) -> None:
    Poster(receiver.url, HEADERS, timeout_s=5).connect()
    with pytest.raises(SinkError, match="refused"):
        Poster(f"http://127.0.0.1:{free_port()}", HEADERS, timeout_s=5).connect()
    assert receiver.asked == 0
