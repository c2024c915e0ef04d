//! What targets of formats share whose values name their schema: bytes as types and values, and what is held of them.
use _native::by_schema::framing::Framing;
use _native::by_schema::plan::Described;
use _native::by_schema::records::{Decoded, Format, Records};
use arrow_array::{Array, StructArray};
use arrow_schema::Fields;

fn decode(records: &mut Records, values: &[&[u8]]) -> (StructArray, Vec<i64>) {
    let mut data = Vec::new();
    let mut starts = vec![0];
    for value in values {
        data.extend_from_slice(value);
        data.push(b'\n');
        starts.push(data.len() as i64);
    }
    match records.decode((&data, &starts), None).expect("the values stand one behind the other") {
        Decoded::Rows(columns, refused) => (columns, refused),
        Decoded::Unknown(keys) => panic!("{} schemas are not known", keys.len()),
    }
}

/// Pieces, each with its length before it.
fn pieces(mut data: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some((length, rest)) = data.split_first() {
        let (piece, rest) = rest.split_at((*length as usize).min(rest.len()));
        found.push(piece);
        data = rest;
    }
    found
}

/// Nothing panics, the columns are sound, and each value has the same fate alone and with others.
///
/// The first piece is types, if it is any that go into the columns; else `every_type` is read.
pub fn held(
    data: &[u8],
    format: Format,
    fields: &Fields,
    any_types: fn(&[u8]) -> Vec<Described>,
    every_type: fn() -> Vec<Described>,
) {
    let values = pieces(data);
    let Some((types, values)) = values.split_first() else { return };
    let mut records = Records::new(fields, format, Framing::Bare, b"").expect("all types are read");
    if types.is_empty() || records.learn(b"", Some(any_types(types))).is_err() {
        records.learn(b"", Some(every_type())).expect("all go into their columns");
    }
    let (columns, refused) = decode(&mut records, values);
    columns.to_data().validate_full().expect("sound columns");
    assert_eq!(columns.len() + refused.len(), values.len());
    let mut row = 0;
    for (i, value) in values.iter().enumerate() {
        let (alone, left) = decode(&mut records, &[value]);
        if refused.contains(&(i as i64)) {
            assert_eq!((alone.len(), left.len()), (0, 1));
            continue;
        }
        assert_eq!(columns.slice(row, 1), alone);
        row += 1;
    }
}
