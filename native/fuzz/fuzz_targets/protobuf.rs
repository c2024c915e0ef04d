//! Bytes of anything as messages of Protobuf, by a type with every field, and by types that are themselves made of
//! bytes: nothing panics or is out of bounds; the columns are sound; alone and with others, each value has the same fate.
#![no_main]
mod by_schema;

use std::sync::{Arc, LazyLock};

use _native::by_schema::plan::Described;
use _native::by_schema::records::Format;
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 19] = [
    "bool",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
    "float",
    "double",
    "string",
    "bytes",
    "timestamp",
    "enum",
    "wrapped",
    "message",
];

static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    let inner = Fields::from(vec![Field::new("x", DataType::Utf8, true), Field::new("y", DataType::Boolean, false)]);
    let entry = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Struct(inner.clone()), true),
    ]);
    let entries = Arc::new(Field::new("entries", DataType::Struct(entry), false));
    let item = |kind: DataType| DataType::List(Arc::new(Field::new("item", kind, true)));
    let kinds = [
        DataType::Boolean,
        DataType::Int32,
        DataType::Int64,
        DataType::Int64,
        DataType::Decimal128(38, 18),
        DataType::Float64,
        DataType::Int64,
        DataType::Float64,
        DataType::Decimal128(20, 0),
        DataType::Int32,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Utf8,
        DataType::Binary,
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Utf8,
        DataType::Utf8,
        DataType::Struct(inner.clone()),
        item(DataType::Int32),
        item(DataType::Struct(inner)),
        DataType::Map(entries, false),
    ];
    kinds.into_iter().zip("abcdefghijklmnopqrstuv".chars()).map(|(kind, name)| Field::new(name, kind, true)).collect()
});

fn described(name: &str, numbers: &[i64]) -> Described {
    let texts = if name == "enum" { numbers.iter().map(|n| format!("N{n}")).collect() } else { Vec::new() };
    (name.into(), numbers.to_vec(), texts)
}

/// Every type, into its column; the first two and a message that is read over are of a oneof.
fn every_type() -> Vec<Described> {
    let mut types: Vec<Described> = NAMES[..16].iter().map(|name| described(name, &[])).collect();
    types.push(described("enum", &[-1, 0, 7]));
    types.push(described("wrapped", &[1, 13]));
    types.push(described("message", &[3, 1, 13, 0, 0, -1, 1, 2, 0, 1, 0, -1, 0]));
    let ops = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 5, 18, 18];
    let mut numbers = vec![30];
    for (i, op) in ops.into_iter().enumerate() {
        let i = i as i64;
        let mode = if i < 19 { 0 } else { 1 + (i == 21) as i64 };
        numbers.extend([i + 1, op, i, mode, if i < 2 { 0 } else { -1 }, (i < 17) as i64 & i & 1 | (i >= 15) as i64]);
    }
    numbers.extend([40, 14, -1, 0, 0, 1]);
    types.push(described("message", &numbers));
    types
}

/// Types of bytes: a name and numbers, whose count the second byte says.
fn any_types(mut data: &[u8]) -> Vec<Described> {
    let mut types = Vec::new();
    while let [name, count, rest @ ..] = data {
        let (numbers, rest) = rest.split_at((*count as usize % 20).min(rest.len()));
        let numbers: Vec<i64> = numbers.iter().map(|n| *n as i8 as i64).collect();
        types.push(described(NAMES[*name as usize % NAMES.len()], &numbers));
        data = rest;
    }
    types
}

fuzz_target!(|data: &[u8]| by_schema::held(data, Format::Protobuf, &FIELDS, any_types, every_type));
