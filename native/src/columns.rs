//! Columns that grow a row at a time and can forget the last ones, by schema.
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int32Array,
    Int64Array, ListArray, MapArray, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields, TimeUnit};

use crate::buffers::{Bits, Texts, last, offsets};

/// Types that are nested deeper are refused: whoever reads them calls itself for each level.
pub const DEPTH_MAX: usize = 64;

/// Values of one type.
pub enum Kind {
    Bool(Bits),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Text(Texts),
    Bytes(Texts),
    Date(Vec<i32>),
    /// Microseconds; with a time zone they are UTC's.
    Time(Vec<i64>, Option<Arc<str>>),
    /// Of so many digits, so many of them behind the point.
    Decimal(Vec<i128>, u8, i8),
    Struct(Object),
    List(Vec<i32>, FieldRef, Box<Column>),
    Map(Box<Map>),
}

/// Objects whose names are no fields.
pub struct Map {
    pub ends: Vec<i32>,
    pub keys: Texts,
    pub items: Column,
    entries: FieldRef,
    ordered: bool,
}

/// One column, or what stands inside one.
pub struct Column {
    pub kind: Kind,
    pub nullable: bool,
    pub len: usize,
    /// Places that one value takes: of an object those of its fields.
    pub places: u64,
    /// None where nothing is null so far.
    valid: Option<Bits>,
    /// `"name":` as the text most likely has it; its first 16 bytes, and which bits of them count.
    pub literal: Vec<u8>,
    pub head: u128,
    pub mask: u128,
    last: usize,
}

/// The fields of an object.
pub struct Object {
    pub columns: Vec<Column>,
    pub names: HashMap<Vec<u8>, usize>,
    /// Per field, which one followed it last time; behind all, which one was the first.
    pub after: Vec<usize>,
    /// Per field, the number of the object that had it last.
    pub seen: Vec<u64>,
    pub turn: u64,
    fields: Fields,
}

impl Object {
    /// Answers with a sentence where a field has a type that is not read from JSON here.
    pub fn new(fields: &Fields, depth: usize) -> Result<Object, String> {
        if depth > DEPTH_MAX {
            return Err(format!("types are nested deeper than {DEPTH_MAX} levels"));
        }
        let columns: Vec<Column> = fields.iter().map(|f| Column::new(f, depth)).collect::<Result<_, _>>()?;
        let count = columns.len();
        Ok(Object {
            names: fields.iter().enumerate().map(|(i, f)| (f.name().clone().into_bytes(), i)).collect(),
            after: (1..=count).chain([0]).collect(),
            seen: vec![0; count],
            turn: 0,
            fields: fields.clone(),
            columns,
        })
    }

    pub fn begin(&mut self, rows: usize, bytes: usize) {
        self.columns.iter_mut().for_each(|c| c.begin(rows, bytes));
    }

    pub fn truncate(&mut self, len: usize) {
        self.columns.iter_mut().for_each(|c| c.truncate(len));
    }

    /// Null where the object of this number had no such field. False where that is required.
    #[inline]
    pub fn fill(&mut self, turn: u64) -> bool {
        for (column, seen) in self.columns.iter_mut().zip(&self.seen) {
            if *seen != turn {
                if !column.nullable {
                    return false;
                }
                column.null();
            }
        }
        true
    }

    /// What was gathered, `len` rows; nothing is left here.
    pub fn finish(&mut self, valid: Option<NullBuffer>, len: usize) -> Result<StructArray, ArrowError> {
        let arrays = self.columns.iter_mut().map(Column::finish).collect::<Result<Vec<_>, _>>()?;
        StructArray::try_new_with_length(self.fields.clone(), arrays, valid, len)
    }
}

impl Column {
    pub fn new(field: &FieldRef, depth: usize) -> Result<Column, String> {
        let kind = match field.data_type() {
            DataType::Boolean => Kind::Bool(Bits::default()),
            DataType::Int32 => Kind::Int(Vec::new()),
            DataType::Int64 => Kind::Long(Vec::new()),
            DataType::Float32 => Kind::Float(Vec::new()),
            DataType::Float64 => Kind::Double(Vec::new()),
            DataType::Utf8 => Kind::Text(Texts::new()),
            DataType::Binary => Kind::Bytes(Texts::new()),
            DataType::Date32 => Kind::Date(Vec::new()),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => Kind::Time(Vec::new(), zone.clone()),
            DataType::Decimal128(digits, scale) if *scale >= 0 => Kind::Decimal(Vec::new(), *digits, *scale),
            DataType::Struct(inner) => Kind::Struct(Object::new(inner, depth + 1)?),
            DataType::List(item) if depth < DEPTH_MAX => {
                Kind::List(vec![0], item.clone(), Box::new(Column::new(item, depth + 1)?))
            }
            DataType::Map(entries, ordered) if depth < DEPTH_MAX => Kind::Map(Box::new(Map {
                ends: vec![0],
                keys: Texts::new(),
                items: Column::new(item_of(entries)?, depth + 1)?,
                entries: entries.clone(),
                ordered: *ordered,
            })),
            other => return Err(format!("column {}: {other} is not read here", field.name())),
        };
        let (literal, head, mask) = literal(field.name());
        let places = match &kind {
            Kind::Struct(object) => object.columns.iter().map(|column| column.places).sum::<u64>().max(1),
            _ => 1,
        };
        Ok(Column { kind, nullable: field.is_nullable(), len: 0, places, valid: None, literal, head, mask, last: 0 })
    }

    pub fn begin(&mut self, rows: usize, bytes: usize) {
        let more = (self.last + self.last / 8).min(bytes);
        match &mut self.kind {
            Kind::Bool(bits) => bits.reserve(rows),
            Kind::Int(v) | Kind::Date(v) => v.reserve(rows),
            Kind::Long(v) | Kind::Time(v, _) => v.reserve(rows),
            Kind::Float(v) => v.reserve(rows),
            Kind::Double(v) => v.reserve(rows),
            Kind::Decimal(v, ..) => v.reserve(rows),
            Kind::Text(texts) | Kind::Bytes(texts) => texts.begin(rows, bytes),
            Kind::Struct(object) => object.begin(rows, bytes),
            Kind::List(ends, _, item) => {
                ends.reserve(rows);
                item.begin(more, bytes);
            }
            Kind::Map(map) => {
                map.ends.reserve(rows);
                map.keys.begin(more, bytes);
                map.items.begin(more, bytes);
            }
        }
    }

    /// A value was added, which is not null.
    #[inline(always)]
    pub fn mark(&mut self) {
        if let Some(valid) = &mut self.valid {
            valid.push(true);
        }
        self.len += 1;
    }

    /// Adds a null, or inside of one, where none may be, any value.
    pub fn null(&mut self) {
        if self.nullable {
            let len = self.len;
            self.valid.get_or_insert_with(|| Bits::trues(len)).push(false);
        }
        self.len += 1;
        match &mut self.kind {
            Kind::Bool(bits) => bits.push(false),
            Kind::Int(v) | Kind::Date(v) => v.push(0),
            Kind::Long(v) | Kind::Time(v, _) => v.push(0),
            Kind::Float(v) => v.push(0.0),
            Kind::Double(v) => v.push(0.0),
            Kind::Decimal(v, ..) => v.push(0),
            Kind::Text(texts) | Kind::Bytes(texts) => texts.end(),
            Kind::Struct(object) => object.columns.iter_mut().for_each(Column::null),
            Kind::List(ends, ..) => ends.push(last(ends) as i32),
            Kind::Map(map) => map.ends.push(last(&map.ends) as i32),
        }
    }

    /// Of texts: these members as an object, or null where there are none.
    pub fn braced(&mut self, members: &[u8]) {
        match &mut self.kind {
            Kind::Text(texts) if !members.is_empty() => {
                texts.data.push(b'{');
                texts.data.extend_from_slice(members);
                texts.data.push(b'}');
                texts.end();
                self.mark();
            }
            _ => self.null(),
        }
    }

    /// The first `len` values alone, whatever a value that was begun has left behind them.
    pub fn truncate(&mut self, len: usize) {
        if let Some(valid) = &mut self.valid {
            valid.truncate(len);
        }
        self.len = self.len.min(len);
        match &mut self.kind {
            Kind::Bool(bits) => bits.truncate(len),
            Kind::Int(v) | Kind::Date(v) => v.truncate(len),
            Kind::Long(v) | Kind::Time(v, _) => v.truncate(len),
            Kind::Float(v) => v.truncate(len),
            Kind::Double(v) => v.truncate(len),
            Kind::Decimal(v, ..) => v.truncate(len),
            Kind::Text(texts) | Kind::Bytes(texts) => texts.truncate(len),
            Kind::Struct(object) => object.truncate(len),
            Kind::List(ends, _, item) => {
                ends.truncate(len + 1);
                item.truncate(last(ends));
            }
            Kind::Map(map) => {
                map.ends.truncate(len + 1);
                map.keys.truncate(last(&map.ends));
                map.items.truncate(last(&map.ends));
            }
        }
    }

    pub fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let len = std::mem::take(&mut self.len);
        self.last = len;
        let valid = self.valid.take().map(|mut bits| NullBuffer::new(bits.finish()));
        Ok(match &mut self.kind {
            Kind::Bool(bits) => Arc::new(BooleanArray::new(bits.finish(), valid)),
            Kind::Int(v) => Arc::new(Int32Array::try_new(taken(v), valid)?),
            Kind::Long(v) => Arc::new(Int64Array::try_new(taken(v), valid)?),
            Kind::Float(v) => Arc::new(Float32Array::try_new(taken(v), valid)?),
            Kind::Double(v) => Arc::new(Float64Array::try_new(taken(v), valid)?),
            Kind::Date(v) => Arc::new(Date32Array::try_new(taken(v), valid)?),
            Kind::Time(v, zone) => {
                Arc::new(TimestampMicrosecondArray::try_new(taken(v), valid)?.with_timezone_opt(zone.clone()))
            }
            Kind::Decimal(v, digits, scale) => {
                Arc::new(Decimal128Array::try_new(taken(v), valid)?.with_precision_and_scale(*digits, *scale)?)
            }
            Kind::Text(texts) => {
                let (ends, data) = texts.finish();
                Arc::new(StringArray::try_new(ends, data, valid)?)
            }
            Kind::Bytes(texts) => {
                let (ends, data) = texts.finish();
                Arc::new(BinaryArray::try_new(ends, data, valid)?)
            }
            Kind::Struct(object) => Arc::new(object.finish(valid, len)?),
            Kind::List(ends, field, item) => {
                let ends = offsets(std::mem::replace(ends, vec![0]));
                self.last = item.len;
                Arc::new(ListArray::try_new(field.clone(), ends, item.finish()?, valid)?)
            }
            Kind::Map(map) => {
                self.last = map.items.len;
                Arc::new(map.finish(valid)?)
            }
        })
    }
}

impl Map {
    fn finish(&mut self, valid: Option<NullBuffer>) -> Result<MapArray, ArrowError> {
        let ends = offsets(std::mem::replace(&mut self.ends, vec![0]));
        let len = self.keys.len();
        let (key_ends, data) = self.keys.finish();
        let keys: ArrayRef = Arc::new(StringArray::try_new(key_ends, data, None)?);
        let DataType::Struct(fields) = self.entries.data_type() else {
            return Err(ArrowError::SchemaError("a map has entries".into()));
        };
        let entries = StructArray::try_new_with_length(fields.clone(), vec![keys, self.items.finish()?], None, len)?;
        MapArray::try_new(self.entries.clone(), ends, entries, valid, self.ordered)
    }
}

fn taken<T: arrow_buffer::ArrowNativeType>(values: &mut Vec<T>) -> ScalarBuffer<T> {
    ScalarBuffer::from(std::mem::take(values))
}

/// Of a MAP with texts for keys.
fn item_of(entries: &FieldRef) -> Result<&FieldRef, String> {
    match entries.data_type() {
        DataType::Struct(fields) if fields.len() == 2 && fields[0].data_type() == &DataType::Utf8 => Ok(&fields[1]),
        _ => Err("a MAP's key is a STRING".into()),
    }
}

/// How a name is spelled that needs no escape; of any other name it is nothing that a text could hold.
fn literal(name: &str) -> (Vec<u8>, u128, u128) {
    if name.bytes().any(|c| c < 0x20 || c == b'"' || c == b'\\') {
        return (Vec::new(), 1, 0);
    }
    let literal = format!("\"{name}\":").into_bytes();
    let mut head = [0; 16];
    let count = literal.len().min(16);
    head[..count].copy_from_slice(&literal[..count]);
    let mask = if count == 16 { u128::MAX } else { (1 << (8 * count)) - 1 };
    (literal, u128::from_le_bytes(head), mask)
}
