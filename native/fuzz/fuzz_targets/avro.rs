//! Bytes of anything as values of Avro, by a schema with every type, and by types that are themselves made of bytes:
//! nothing panics or is out of bounds; the columns are sound; alone and with others, each value has the same fate.
#![no_main]
mod by_schema;

use std::sync::{Arc, LazyLock};

use _native::by_schema::plan::Described;
use _native::by_schema::records::Format;
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 19] = [
    "null", "boolean", "int", "date", "long", "millis", "micros", "float", "double", "bytes", "string", "uuid",
    "fixed", "decimal", "enum", "union", "array", "map", "record",
];

static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    let entry =
        Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Int64, true)]);
    let entries = Arc::new(Field::new("entries", DataType::Struct(entry), false));
    let inner = Fields::from(vec![Field::new("x", DataType::Utf8, true), Field::new("y", DataType::Boolean, false)]);
    let kinds = [
        DataType::Utf8,
        DataType::Int64,
        DataType::Int32,
        DataType::Float64,
        DataType::Float32,
        DataType::Boolean,
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Decimal128(9, 2),
        DataType::Decimal128(38, 38),
        DataType::Binary,
        DataType::Struct(inner.clone()),
        DataType::List(Arc::new(Field::new("item", DataType::Struct(inner), true))),
        DataType::Map(entries, false),
        DataType::Utf8,
        DataType::Utf8,
        DataType::Binary,
    ];
    kinds.into_iter().zip("abcdefghijklmnopqr".chars()).map(|(kind, name)| Field::new(name, kind, true)).collect()
});

fn described(name: &str, numbers: &[i64]) -> Described {
    (name.into(), numbers.to_vec(), if name == "enum" { vec!["A".into(), "BCD".into()] } else { Vec::new() })
}

/// Every type, into its column or over it; some of them may be null.
fn every_type() -> Vec<Described> {
    let mut types: Vec<Described> = NAMES[..12].iter().map(|name| described(name, &[])).collect();
    for (name, numbers) in [
        ("fixed", &[3][..]),          // 12
        ("decimal", &[0, 7, 0]),      // 13
        ("decimal", &[17, 20, 18]),   // 14
        ("enum", &[]),                // 15
        ("union", &[0, 4]),           // 16: long or null
        ("union", &[10, 0]),          // 17: text or null
        ("record", &[10, 0, 1, 1]),   // 18: into x and y
        ("union", &[0, 18]),          // 19
        ("array", &[19]),             // 20
        ("map", &[16]),               // 21
        ("union", &[0, 10, 4, 12]),   // 22: over
        ("map", &[22]),               // 23
        ("record", &[23, -1, 5, -1]), // 24
        ("array", &[24]),             // 25
    ] {
        types.push(described(name, numbers));
    }
    let columns = [17, 16, 2, 8, 7, 1, 3, 6, 5, 13, 14, 9, 19, 20, 21, 15, 11, 12];
    let pairs = columns.iter().enumerate().flat_map(|(i, place)| [*place, i as i64]);
    types.push(described("record", &pairs.chain([25, -1]).collect::<Vec<_>>()));
    types
}

/// Types of bytes: a name and up to three numbers each.
fn any_types(data: &[u8]) -> Vec<Described> {
    let mut types = Vec::new();
    for four in data.chunks_exact(4) {
        let numbers: Vec<i64> = four[1..1 + (four[0] >> 6) as usize].iter().map(|n| *n as i8 as i64).collect();
        types.push(described(NAMES[(four[0] & 63) as usize % NAMES.len()], &numbers));
    }
    types
}

fuzz_target!(|data: &[u8]| by_schema::held(data, Format::Avro, &FIELDS, any_types, every_type));
