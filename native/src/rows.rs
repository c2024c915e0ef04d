//! A batch of values to a batch of columns.
use std::sync::Arc;

use arrow_array::StructArray;
use arrow_schema::{ArrowError, DataType, Field, Fields};

use crate::budget::Failure;
use crate::columns::{Column, Object};
use crate::parser::{Parser, Refused};

/// A batch is smaller: where each text ends is said in 32 bits.
pub const BYTES_MAX: usize = i32::MAX as usize;

/// Makes rows of values, for one schema.
pub struct Rows {
    object: Object,
    /// What no field is named for.
    rest: Option<Column>,
    wide: bool,
}

impl Rows {
    /// `wide`: texts are looked at 16 bytes at a time. `rest`: a last column has what no field is named for, as JSON.
    /// Answers with a sentence for a type that is not read here.
    pub fn new(fields: &Fields, wide: bool, rest: bool) -> Result<Rows, String> {
        let rest = if rest { Some(Column::new(&Arc::new(rest_field()), 1)?) } else { None };
        Ok(Rows { object: Object::new(fields, 1)?, rest, wide })
    }

    /// Value `i` is `data[starts[i]..starts[i + 1] - 1]`, and a newline stands behind it. The rows of those that are
    /// taken, and the places of the others. Answers with a failure where that is not how the values are given, or where
    /// they have too many values together.
    pub fn decode(&mut self, data: &[u8], starts: &[i64]) -> Result<(StructArray, Vec<i64>), Failure> {
        let places = places(data, starts)?;
        self.truncate(0);
        self.object.begin(places.len(), data.len());
        if let Some(rest) = &mut self.rest {
            rest.begin(places.len(), data.len());
        }
        let (rows, refused) = match (self.wide, self.rest.is_some()) {
            (true, false) => self.read::<true, false>(data, &places),
            (false, false) => self.read::<false, false>(data, &places),
            (true, true) => self.read::<true, true>(data, &places),
            (false, true) => self.read::<false, true>(data, &places),
        }?;
        let columns = self.finish(rows).map_err(|error| error.to_string())?;
        Ok((columns, refused))
    }

    fn finish(&mut self, rows: usize) -> Result<StructArray, ArrowError> {
        let named = self.object.finish(None, rows)?;
        let Some(rest) = &mut self.rest else { return Ok(named) };
        let (fields, mut columns, _) = named.into_parts();
        let fields: Fields = fields.iter().cloned().chain([Arc::new(rest_field())]).collect();
        columns.push(rest.finish()?);
        StructArray::try_new_with_length(fields, columns, None, rows)
    }

    fn read<const WIDE: bool, const REST: bool>(
        &mut self,
        data: &[u8],
        places: &[(usize, usize)],
    ) -> Result<(usize, Vec<i64>), Failure> {
        let sound = simdutf8::basic::from_utf8(data).is_ok();
        let mut parser = Parser::<WIDE, REST>::new(data);
        let (mut rows, mut refused) = (0, Vec::new());
        for (i, (from, to)) in places.iter().enumerate() {
            let read = if sound || simdutf8::basic::from_utf8(&data[*from..*to]).is_ok() {
                parser.row(*from, *to, &mut self.object)
            } else {
                Err(Refused)
            };
            match read {
                Ok(()) => {
                    rows += 1;
                    if let Some(rest) = &mut self.rest {
                        rest.braced(&parser.rest);
                    }
                }
                Err(Refused) => {
                    self.object.truncate(rows);
                    refused.push(i as i64);
                }
            }
            if places.len() > 1 && parser.budget.is_over() {
                self.truncate(0);
                return Err(Failure::TooLarge);
            }
        }
        Ok((rows, refused))
    }

    fn truncate(&mut self, rows: usize) {
        self.object.truncate(rows);
        if let Some(rest) = &mut self.rest {
            rest.truncate(rows);
        }
    }
}

/// Of the column that has what no field is named for.
fn rest_field() -> Field {
    Field::new("", DataType::Utf8, true)
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
