"""The Hudi table of the driver in Google's storage: real Spark, real Hudi, Google's own connector, and
fake-gcs-server for the store.
"""

from __future__ import annotations

import base64
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lockstep.stores.gs import GsServer
from table.hudi.driver.lock_client import LEASE_FILE
from table.store.location import store_at
from table.store.objects.settings import KeyFile
from tests.integration.test_hudi_table import PLAIN
from tests.integration.test_s3_table import (
    S3Driver,
    begun_committed_rolled_back_and_found,
    opened,
    test_a_jvm_that_stands_still_in_the_lock_is_ended_before_others_may_take_it,
    test_the_lease_of_a_killed_driver_is_not_waited_for,
)
from tests.s3_proxy import S3Proxy

__all__ = [
    "opened",
    "test_a_jvm_that_stands_still_in_the_lock_is_ended_before_others_may_take_it",
    "test_the_lease_of_a_killed_driver_is_not_waited_for",
]

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("gs")]


class GsPlace:
    """A table's place in a bucket of its own."""

    def __init__(self, gs: GsServer) -> None:
        bucket = f"tables-{uuid.uuid4().hex[:12]}"
        gs.make_bucket(bucket)
        self.path = f"gs://{bucket}/lake/events"
        self.settings = gs.settings
        self.direct = store_at(self.path, settings=gs.settings)


@pytest.fixture
def place(gs: GsServer) -> GsPlace:
    return GsPlace(gs)


def test_transactions_at_google_are_begun_committed_rolled_back_and_found(
    opened: Callable[..., S3Driver], spark: SparkSession, place: GsPlace
) -> None:
    begun_committed_rolled_back_and_found(opened, spark, place)


def test_the_lock_at_google_names_its_holder_and_is_given_back(
    opened: Callable[..., S3Driver], place: GsPlace
) -> None:
    driver = opened(properties=PLAIN)
    session = driver.table._session
    transactions = session.client.getTransactionManager()
    transactions.beginStateChange(session.none(), session.none())
    try:
        held = json.loads(place.direct.read(LEASE_FILE, bytes_max=4_096))
    finally:
        transactions.endStateChange(session.none())
    assert not held["expired"] and str(session.jvm_pid()) in held["owner"].split()
    assert json.loads(place.direct.read(LEASE_FILE, bytes_max=4_096))["expired"]


ISSUED = "issued-by-our-own"


@pytest.fixture
def issuer() -> Iterator[str]:
    """Where a service account's key is exchanged for `ISSUED`, as Google does it."""

    class Issuer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"access_token": ISSUED, "token_type": "Bearer", "expires_in": 3_600}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Issuer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()


def key_file(jvm: Any, issuer: str, path: Path) -> KeyFile:
    """Of a service account that nobody has."""
    generator = jvm.java.security.KeyPairGenerator.getInstance("RSA")
    generator.initialize(2_048)
    form = jvm.java.lang.Class.forName("java.security.spec.PKCS8EncodedKeySpec")
    made = jvm.java.security.KeyFactory.getInstance("RSA").getKeySpec(
        generator.generateKeyPair().getPrivate(), form
    )
    key = base64.encodebytes(bytes(made.getEncoded())).decode()
    account = {
        "type": "service_account",
        "project_id": "lake",
        "private_key_id": "1",
        "private_key": f"-----BEGIN PRIVATE KEY-----\n{key}-----END PRIVATE KEY-----\n",
        "client_email": "ingest@lake.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": issuer,
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(account), encoding="utf-8")
    return KeyFile(str(path))


def test_a_service_accounts_key_is_what_python_the_connector_and_the_lock_ask_with(
    opened: Callable[..., S3Driver],
    spark: SparkSession,
    gs: GsServer,
    place: GsPlace,
    issuer: str,
    tmp_path: Path,
) -> None:
    asked: dict[str, set[str]] = {}
    with S3Proxy(gs.port) as proxy:
        forward = proxy._forward

        def noted(handler: Any, body: bytes) -> tuple[int, dict[str, str], bytes]:
            who = handler.headers.get("User-Agent", "").split("/")[0]
            asked.setdefault(who, set()).add(handler.headers.get("Authorization", ""))
            return forward(handler, body)

        proxy._forward = noted  # type: ignore[method-assign]
        credentials = key_file(spark._jvm, issuer, tmp_path / "key.json")
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        hadoop.set("fs.gs.token.server.url", issuer)  # it asks Google's, whatever the file says
        place.settings = replace(gs.settings, endpoint=proxy.endpoint, credentials=credentials)
        place.direct = store_at(place.path, settings=place.settings)
        opened().run("one", 10)
    by_exchange = {f"Bearer {ISSUED}"}
    lock = asked.pop("Java-http-client")
    signed = {told for all_told in asked.values() for told in all_told if told.startswith("Bearer eyJ")}
    assert lock == by_exchange
    assert signed and by_exchange in asked.values(), "Python asks with what it has signed itself"
    assert set().union(*asked.values()) == signed | by_exchange, "nobody asks without"
