"""Compare `record.envelope = "connect"` with the values that Kafka Connect's own JsonConverter writes."""

from __future__ import annotations

import base64
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lockstep.launch.jars import KAFKA_VERSION, Bundle, find_java, resolve
from tests.unit.participant.records.envelopes.test_connect import decode as upserts
from tests.unit.participant.records.envelopes.test_connect import keyed
from tests.unit.participant.records.json.test_found_fields import NATIVE, PLAIN, batch, decoder

pytestmark = pytest.mark.integration

CONVERTER = Bundle(
    title=f"Kafka Connect's JsonConverter {KAFKA_VERSION}",
    name=f"connect-json-{KAFKA_VERSION}",
    packages=(f"org.apache.kafka:connect-json:{KAFKA_VERSION}",),
)
DDL = (
    "id BIGINT NOT NULL, name STRING, score DOUBLE, flag BOOLEAN, raw BINARY, many ARRAY<INT>, "
    "inside STRUCT<city: STRING>"
)
COUNT = 2_000
PROGRAM = """
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.json.JsonConverter;

public class Values {
    static String b64(byte[] bytes) { return Base64.getEncoder().encodeToString(bytes); }
    static String text(String text) {
        return text == null ? "-" : "=" + b64(text.getBytes(StandardCharsets.UTF_8));
    }
    static String word(Random random) {
        if (random.nextInt(5) == 0) return null;
        int[] points = random.ints(random.nextInt(12), 1, 0x2FFFF)
            .filter(point -> point < 0xD800 || point > 0xDFFF).toArray();
        return new String(points, 0, points.length);
    }
    public static void main(String[] args) {
        Random random = new Random(Long.parseLong(args[0]));
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "true"), false);
        Schema inside = SchemaBuilder.struct().optional().field("city", Schema.OPTIONAL_STRING_SCHEMA)
            .build();
        Schema row = SchemaBuilder.struct().name("row").optional().field("id", Schema.INT64_SCHEMA)
            .field("name", Schema.OPTIONAL_STRING_SCHEMA).field("score", Schema.OPTIONAL_FLOAT64_SCHEMA)
            .field("flag", Schema.OPTIONAL_BOOLEAN_SCHEMA).field("raw", Schema.OPTIONAL_BYTES_SCHEMA)
            .field("many", SchemaBuilder.array(Schema.INT32_SCHEMA).optional().build())
            .field("inside", inside).build();
        StringBuilder out = new StringBuilder();
        for (int n = Integer.parseInt(args[1]); n > 0; n--) {
            String name = word(random), city = word(random);
            double factor = Math.pow(10, random.nextInt(40) - 20);
            Double score = random.nextInt(5) == 0 ? null : random.nextGaussian() * factor;
            if (n % 7 == 0) score = new Double[]{Double.NaN, 1 / 0.0, -1 / 0.0}[n / 7 % 3];
            Boolean flag = random.nextInt(3) == 0 ? null : random.nextBoolean();
            byte[] raw = random.nextInt(4) == 0 ? null : new byte[random.nextInt(9)];
            if (raw != null) random.nextBytes(raw);
            List<Integer> many = random.nextInt(4) == 0 ? null : new ArrayList<>();
            if (many != null) for (int m = random.nextInt(4); m > 0; m--) many.add(random.nextInt());
            Struct nested = random.nextInt(4) == 0 ? null : new Struct(inside).put("city", city);
            long id = random.nextLong();
            Struct value = new Struct(row).put("id", id).put("name", name).put("score", score)
                .put("flag", flag).put("raw", raw).put("many", many).put("inside", nested);
            out.append(String.join("\\t", b64(converter.fromConnectData("t", row, value)), "" + id,
                text(name), score == null ? "-" : "" + Double.doubleToLongBits(score),
                flag == null ? "-" : "" + flag, raw == null ? "-" : "=" + b64(raw),
                many == null ? "-" : "" + many,
                nested == null ? "-" : "=" + text(city))).append("\\n");
        }
        out.append(b64(converter.fromConnectData("t", row, null))).append("\\n");
        JsonConverter keys = new JsonConverter();
        keys.configure(Map.of("schemas.enable", "true"), true);
        Schema key = SchemaBuilder.struct().field("id", Schema.INT64_SCHEMA).build();
        out.append(b64(keys.fromConnectData("t", key, new Struct(key).put("id", 7L)))).append("\\n");
        out.append(b64(keys.fromConnectData("t", Schema.INT64_SCHEMA, 8L))).append("\\n");
        System.out.print(out);
    }
}
"""


def text_of(told: str) -> str | None:
    return base64.b64decode(told[1:]).decode() if told != "-" else None


def row_of(told: list[str]) -> dict[str, Any]:
    number, name, score, flag, raw, many, inside = told
    return {
        "id": int(number),
        "name": text_of(name),
        "score": struct.unpack("<d", struct.pack("<q", int(score)))[0] if score != "-" else None,
        "flag": flag == "true" if flag != "-" else None,
        "raw": base64.b64decode(raw[1:]) if raw != "-" else None,
        "many": [int(one) for one in many.strip("[]").split(", ") if one] if many != "-" else None,
        "inside": {"city": text_of(inside[1:])} if inside != "-" else None,
    }


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose NaN equals another."""
    return {**row, "score": repr(row["score"])}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """Values as the converter writes them, each with its row; then one that is null, and two keys."""
    program: Path = tmp_path_factory.mktemp("converter") / "Values.java"
    program.write_text(PROGRAM, encoding="utf-8")
    jars = os.pathsep.join(map(str, resolve(CONVERTER)))
    command = [find_java(), "-cp", jars, program, "7", str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
def test_rows_of_the_converter_are_decoded_without_a_difference(kind: str, told: list[list[str]]) -> None:
    *given, null, _, _ = told
    values = [base64.b64decode(one[0]) for one in (*given, null)]
    found = decoder(kind, DDL, envelope="connect").decode(batch(values))
    assert len(given) == COUNT
    assert list(map(comparable, found.table.to_pylist())) == [comparable(row_of(one[1:])) for one in given]
    assert list(found.rejects.by_place()) == [COUNT], "a null payload is no row"


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
def test_a_null_of_the_converter_deletes_the_row_of_its_key(kind: str, told: list[list[str]]) -> None:
    null, key, number = (base64.b64decode(one[0]) for one in told[-3:])
    records = keyed([(key, null), (number, null), (b"", null)])
    found = upserts(kind, records)
    assert found.tombstones is not None
    assert found.tombstones.columns.to_pylist() == [{"id": 7}, {"id": 8}]
    assert list(found.rejects.by_place()) == [2], "a record without a key deletes no row"
