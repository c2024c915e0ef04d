//! Lines of anything as values of a schema with every type: nothing panics or is out of bounds; the columns are sound;
//! 16 bytes at a time and one at a time, alone and with others, each value has the same fate; and what is taken is JSON.
#![no_main]
use std::sync::{Arc, LazyLock};

use _native::rows::Rows;
use arrow_array::{Array, StructArray};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use libfuzzer_sys::fuzz_target;

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
    ];
    kinds.into_iter().zip("abcdefghijklmno".chars()).map(|(kind, name)| Field::new(name, kind, true)).collect()
});

fn decode(values: &[&[u8]], wide: bool, rest: bool) -> (StructArray, Vec<i64>) {
    let mut data = Vec::new();
    let mut starts = vec![0];
    for value in values {
        data.extend_from_slice(value);
        data.push(b'\n');
        starts.push(data.len() as i64);
    }
    let mut rows = Rows::new(&FIELDS, wide, rest).expect("all types are read");
    rows.decode(&data, &starts).expect("the values stand one behind the other")
}

fuzz_target!(|data: &[u8]| {
    let values: Vec<&[u8]> = data.split(|c| *c == b'\r').collect();
    let rest = data.len() % 2 == 0;
    let (columns, refused) = decode(&values, true, rest);
    columns.to_data().validate_full().expect("sound columns");
    assert_eq!(columns.len() + refused.len(), values.len());
    let narrow = decode(&values, false, rest);
    assert_eq!((&columns, &refused), (&narrow.0, &narrow.1));
    let mut row = 0;
    for (i, value) in values.iter().enumerate() {
        let (alone, left) = decode(&[value], true, rest);
        if refused.contains(&(i as i64)) {
            assert_eq!((alone.len(), left.len()), (0, 1));
            continue;
        }
        assert_eq!(columns.slice(row, 1), alone);
        row += 1;
        let text = std::str::from_utf8(value).expect("UTF-8");
        if !text.contains("NaN") && !text.contains("Infinity") {
            serde_json::from_str::<serde::de::IgnoredAny>(text).expect("JSON");
        }
    }
});
