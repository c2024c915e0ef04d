//! A batch of values to a batch of columns.
use arrow_array::StructArray;
use arrow_schema::Fields;

use crate::columns::Object;
use crate::parser::{Parser, Refused};

/// A batch is smaller: where each text ends is said in 32 bits.
pub const BYTES_MAX: usize = i32::MAX as usize;

/// Makes rows of values, for one schema.
pub struct Rows {
    object: Object,
    wide: bool,
}

impl Rows {
    /// `wide`: texts are looked at 16 bytes at a time. Answers with a sentence for a type that is not read here.
    pub fn new(fields: &Fields, wide: bool) -> Result<Rows, String> {
        Ok(Rows { object: Object::new(fields, 1)?, wide })
    }

    /// Value `i` is `data[starts[i]..starts[i + 1] - 1]`, and a newline stands behind it. The rows of those that are
    /// taken, and the places of the others. Answers with a sentence where that is not how the values are given.
    pub fn decode(&mut self, data: &[u8], starts: &[i64]) -> Result<(StructArray, Vec<i64>), String> {
        let places = places(data, starts)?;
        self.object.begin(places.len(), data.len());
        let (rows, refused) =
            if self.wide { self.read::<true>(data, &places) } else { self.read::<false>(data, &places) };
        let columns = self.object.finish(None, rows).map_err(|error| error.to_string())?;
        Ok((columns, refused))
    }

    fn read<const WIDE: bool>(&mut self, data: &[u8], places: &[(usize, usize)]) -> (usize, Vec<i64>) {
        let sound = simdutf8::basic::from_utf8(data).is_ok();
        let mut parser = Parser::<WIDE>::new(data);
        let (mut rows, mut refused) = (0, Vec::new());
        for (i, (from, to)) in places.iter().enumerate() {
            let read = if sound || simdutf8::basic::from_utf8(&data[*from..*to]).is_ok() {
                parser.row(*from, *to, &mut self.object)
            } else {
                Err(Refused)
            };
            match read {
                Ok(()) => rows += 1,
                Err(Refused) => {
                    self.object.truncate(rows);
                    refused.push(i as i64);
                }
            }
        }
        (rows, refused)
    }
}

/// From where to where each value is.
pub(crate) fn places(data: &[u8], starts: &[i64]) -> Result<Vec<(usize, usize)>, String> {
    if data.len() > BYTES_MAX {
        return Err(format!("a batch of {} bytes: {BYTES_MAX} are the most", data.len()));
    }
    let wrong = || "the values are not one behind the other, each with a newline behind it".to_string();
    let place = |pair: &[i64]| {
        let (from, end) = (usize::try_from(pair[0]).ok()?, usize::try_from(pair[1]).ok()?);
        (from < end && data.get(end - 1) == Some(&b'\n')).then_some((from, end - 1))
    };
    starts.windows(2).map(|pair| place(pair).ok_or_else(wrong)).collect()
}
