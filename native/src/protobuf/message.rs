//! Messages of Protobuf into columns. Source: Protobuf's "Encoding".
//!
//! Nothing is allocated for what is only announced. `SURE`: as of `avro::datum`.
use crate::avro::datum::{within_eight, zigzag};
use crate::budget::Budget;
use crate::buffers::Texts;
use crate::columns::{Column, Kind, Map, Object};
use crate::parser::{Read, Refused};
use crate::protobuf::plan::{Field, I32, I64, LEN, Message, Mode, Op, Plan, Unset, VARINT};
use crate::rows::BYTES_MAX;
use crate::texts::MICROS;

const NANOS_MAX: i64 = 999_999_999;
const SHORT_BYTES: usize = 5;
const KEY: u32 = 1;
const VALUE: u32 = 2;

/// One value after another.
pub struct Wire<'a, const SURE: bool> {
    whole: &'a [u8],
    /// To the end of the value.
    data: &'a [u8],
    at: usize,
    pub budget: Budget,
}

impl<'a, const SURE: bool> Wire<'a, SURE> {
    pub fn new(whole: &'a [u8]) -> Self {
        Wire { whole, data: &whole[..0], at: 0, budget: Budget::default() }
    }

    /// What stands from `from` to `to` as one row. Where it is refused the columns hold a part of it.
    pub fn row(&mut self, from: usize, to: usize, plan: &Plan, object: &mut Object) -> Read<()> {
        self.data = &self.whole[..to];
        self.at = from;
        self.budget.begin(to - from);
        self.budget.spend(plan.top().values)?;
        self.message(plan, plan.top(), object, to)
    }

    // --- what messages are made of ------------------------------------------------------------------

    #[inline(always)]
    fn varint(&mut self) -> Read<u64> {
        let first = *self.data.get(self.at).ok_or(Refused)?;
        if first < 0x80 {
            self.at += 1;
            return Ok(first as u64);
        }
        if let Some(eight) = self.data.get(self.at..).and_then(|rest| rest.first_chunk::<8>())
            && let Some((number, count)) = within_eight(u64::from_le_bytes(*eight))
        {
            self.at += count;
            return Ok(number);
        }
        self.any_varint()
    }

    #[inline(never)]
    fn any_varint(&mut self) -> Read<u64> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = *self.data.get(self.at).ok_or(Refused)?;
            self.at += 1;
            if shift == 63 && byte > 1 {
                return Err(Refused);
            }
            number |= ((byte & 0x7f) as u64) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Refused)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let bytes = self.data.get(self.at..).and_then(|rest| rest.first_chunk::<N>()).ok_or(Refused)?;
        self.at += N;
        Ok(*bytes)
    }

    /// A tag or a length, which no parser takes of more bytes.
    #[inline(always)]
    fn short(&mut self) -> Read<u64> {
        let from = self.at;
        let number = self.varint()?;
        if self.at - from <= SHORT_BYTES { Ok(number) } else { Err(Refused) }
    }

    /// Where what has its length before it ends: within `end`.
    #[inline(always)]
    fn end(&mut self, end: usize) -> Read<usize> {
        let length = usize::try_from(self.short()?).map_err(|_| Refused)?;
        let to = self.at.checked_add(length).ok_or(Refused)?;
        if to <= end { Ok(to) } else { Err(Refused) }
    }

    /// A field's number and wire type.
    #[inline(always)]
    fn tag(&mut self) -> Read<(u32, u8)> {
        let tag = u32::try_from(self.short()?).map_err(|_| Refused)?;
        if tag < 8 { Err(Refused) } else { Ok((tag >> 3, (tag & 7) as u8)) }
    }

    fn skip(&mut self, wire: u8, end: usize) -> Read<()> {
        match wire {
            VARINT => drop(self.varint()?),
            I64 => self.at += 8,
            I32 => self.at += 4,
            LEN => self.at = self.end(end)?,
            _ => return Err(Refused),
        }
        if self.at <= end { Ok(()) } else { Err(Refused) }
    }

    // --- into columns -------------------------------------------------------------------------------

    fn message(&mut self, plan: &Plan, message: &Message, object: &mut Object, end: usize) -> Read<()> {
        object.turn += 1;
        let turn = object.turn;
        let (mut next, mut oneofs) = (0, 0);
        while self.at < end {
            let (number, wire) = self.tag()?;
            let place = match message.fields.get(next) {
                Some(field) if field.number == number => Some(next),
                _ => message.fields.binary_search_by_key(&number, |field| field.number).ok(),
            };
            let Some(place) = place else {
                self.skip(wire, end)?;
                continue;
            };
            let field = &message.fields[place];
            next = place + (field.mode == Mode::Single) as usize;
            if oneofs & field.oneof != 0 {
                return Err(Refused);
            }
            oneofs |= field.oneof;
            self.field(plan, field, wire, object, turn, end)?;
        }
        if self.at != end {
            return Err(Refused);
        }
        self.unset(plan, message, object, turn)
    }

    #[inline(always)]
    fn field(&mut self, plan: &Plan, field: &Field, wire: u8, object: &mut Object, turn: u64, end: usize) -> Read<()> {
        let op = plan.op(field.op);
        let Some(at) = field.column else {
            return if wire == op.wire() { self.skip(wire, end) } else { Err(Refused) };
        };
        let (column, seen) = (&mut object.columns[at as usize], &mut object.seen[at as usize]);
        let again = std::mem::replace(seen, turn) == turn;
        match (field.mode, &mut column.kind) {
            (Mode::Single, _) if !again && wire == op.wire() => self.value(plan, op, column, end),
            (Mode::Repeated, Kind::List(_, _, items)) => self.several(plan, op, wire, items, end),
            (Mode::Map, Kind::Map(map)) if wire == LEN => self.entry(plan, op, map, end),
            _ => Err(Refused),
        }
    }

    /// What was not there.
    fn unset(&mut self, plan: &Plan, message: &Message, object: &mut Object, turn: u64) -> Read<()> {
        for field in &message.fields {
            let Some(at) = field.column else { continue };
            let (column, seen) = (&mut object.columns[at as usize], object.seen[at as usize] == turn);
            match (field.mode, &mut column.kind) {
                (Mode::Single, _) if seen => {}
                (Mode::Single, _) => match field.unset {
                    Unset::Null if column.nullable => column.null(),
                    Unset::Default => self.default(plan, plan.op(field.op), column)?,
                    _ => return Err(Refused),
                },
                (Mode::Repeated, Kind::List(ends, _, items)) if seen || field.unset != Unset::Refused => {
                    ends.push(items.len as i32);
                    column.mark();
                }
                (Mode::Map, Kind::Map(map)) => {
                    let before = map.ends.last().map_or(0, |end| *end as usize);
                    if map.keys.twice(before) {
                        return Err(Refused);
                    }
                    map.ends.push(map.keys.len() as i32);
                    column.mark();
                }
                _ => return Err(Refused),
            }
        }
        message.absent.iter().for_each(|at| object.columns[*at as usize].null());
        Ok(())
    }

    /// Of a field that is repeated: one, or several that are packed.
    fn several(&mut self, plan: &Plan, op: &Op, wire: u8, items: &mut Column, end: usize) -> Read<()> {
        if wire == op.wire() {
            self.budget.spend(op.values())?;
            return self.value(plan, op, items, end);
        }
        if wire != LEN || op.has_length() {
            return Err(Refused);
        }
        let end = self.end(end)?;
        while self.at < end {
            self.budget.spend(op.values())?;
            self.value(plan, op, items, end)?;
        }
        if self.at == end { Ok(()) } else { Err(Refused) }
    }

    fn entry(&mut self, plan: &Plan, op: &Op, map: &mut Map, end: usize) -> Read<()> {
        self.budget.spend(op.values() + 1)?;
        let end = self.end(end)?;
        let (mut key, mut value) = (false, false);
        while self.at < end {
            match self.tag()? {
                (KEY, LEN) if !std::mem::replace(&mut key, true) => self.text(&mut map.keys, end)?,
                (VALUE, wire) if wire == op.wire() && !std::mem::replace(&mut value, true) => {
                    self.value(plan, op, &mut map.items, end)?;
                }
                (KEY | VALUE, _) => return Err(Refused),
                (_, wire) => self.skip(wire, end)?,
            }
        }
        if !key {
            map.keys.end();
        }
        if !value {
            self.default(plan, op, &mut map.items)?;
        }
        if self.at == end { Ok(()) } else { Err(Refused) }
    }

    #[inline(always)]
    fn value(&mut self, plan: &Plan, op: &Op, column: &mut Column, end: usize) -> Read<()> {
        match (op, &mut column.kind) {
            (Op::String, Kind::Text(texts)) => self.text(texts, end)?,
            (Op::Int64, Kind::Long(v)) => v.push(self.varint()? as i64),
            (Op::Double, Kind::Double(v)) => v.push(f64::from_le_bytes(self.array()?) + 0.0),
            (Op::Wrapped(number, inner), _) => return self.wrapped(plan, *number, plan.op(*inner), column, end),
            (op, kind) => self.rarer(plan, op, kind, end)?,
        }
        column.mark();
        if self.at <= end { Ok(()) } else { Err(Refused) }
    }

    #[inline(never)]
    fn rarer(&mut self, plan: &Plan, op: &Op, kind: &mut Kind, end: usize) -> Read<()> {
        match (op, kind) {
            (Op::Sint64, Kind::Long(v)) => v.push(zigzag(self.varint()?)),
            (Op::Sfixed64, Kind::Long(v)) => v.push(i64::from_le_bytes(self.array()?)),
            (Op::Float, Kind::Float(v)) => v.push(f32::from_le_bytes(self.array()?) + 0.0),
            (Op::Float, Kind::Double(v)) => v.push(f32::from_le_bytes(self.array()?) as f64 + 0.0),
            (Op::Bool, Kind::Bool(bits)) => match self.varint()? {
                number @ (0 | 1) => bits.push(number == 1),
                _ => return Err(Refused),
            },
            (Op::Bytes, Kind::Bytes(texts)) => {
                let to = self.end(end)?;
                texts.data.extend_from_slice(&self.data[self.at..to]);
                texts.end();
                self.at = to;
            }
            (Op::Enum(names), Kind::Text(texts)) => {
                let number = self.varint()? as i64;
                self.name(names.of(number).ok_or(Refused)?, texts)?;
            }
            (Op::Timestamp, Kind::Time(v, _)) => {
                let to = self.end(end)?;
                v.push(self.timestamp(to)?);
            }
            (Op::Message(message), Kind::Struct(object)) => {
                let to = self.end(end)?;
                self.message(plan, message, object, to)?;
            }
            (Op::Uint64, Kind::Decimal(v, _, scale)) => v.push(scaled(self.varint()?, *scale)),
            (Op::Fixed64, Kind::Decimal(v, _, scale)) => v.push(scaled(u64::from_le_bytes(self.array()?), *scale)),
            (op, Kind::Int(v)) => v.push(i32::try_from(self.number(op)?).map_err(|_| Refused)?),
            (op, Kind::Long(v)) => v.push(self.number(op)?),
            (op, Kind::Double(v)) => v.push(self.number(op)? as f64),
            _ => return Err(Refused),
        }
        Ok(())
    }

    /// Of 32 bits.
    fn number(&mut self, op: &Op) -> Read<i64> {
        let (number, low, high) = match op {
            Op::Int32 => (self.varint()? as i64, i32::MIN as i64, i32::MAX as i64),
            Op::Sint32 => (zigzag(self.varint()?), i32::MIN as i64, i32::MAX as i64),
            Op::Uint32 => (i64::try_from(self.varint()?).map_err(|_| Refused)?, 0, u32::MAX as i64),
            Op::Sfixed32 => return Ok(i32::from_le_bytes(self.array()?) as i64),
            Op::Fixed32 => return Ok(u32::from_le_bytes(self.array()?) as i64),
            _ => return Err(Refused),
        };
        if (low..=high).contains(&number) { Ok(number) } else { Err(Refused) }
    }

    #[inline(always)]
    fn text(&mut self, texts: &mut Texts, end: usize) -> Read<()> {
        let to = self.end(end)?;
        let text = &self.data[self.at..to];
        if SURE && simdutf8::basic::from_utf8(text).is_err() {
            return Err(Refused);
        }
        texts.append(text, &self.whole[self.at..]);
        self.at = to;
        texts.end();
        Ok(())
    }

    /// All other texts of the batch must still fit behind it.
    fn name(&mut self, text: &[u8], texts: &mut Texts) -> Read<()> {
        self.budget.spend_name(text)?;
        if texts.data.len() + text.len() + self.whole.len() > BYTES_MAX {
            return Err(Refused);
        }
        texts.data.extend_from_slice(text);
        texts.end();
        Ok(())
    }

    /// Microseconds since 1970; nanoseconds that are no whole ones are refused.
    fn timestamp(&mut self, end: usize) -> Read<i64> {
        let (mut seconds, mut nanos) = (None, None);
        while self.at < end {
            match self.tag()? {
                (1, VARINT) if seconds.is_none() => seconds = Some(self.varint()? as i64),
                (2, VARINT) if nanos.is_none() => nanos = Some(self.varint()? as i64),
                (1 | 2, _) => return Err(Refused),
                (_, wire) => self.skip(wire, end)?,
            }
        }
        let nanos = nanos.unwrap_or(0);
        if self.at != end || !(0..=NANOS_MAX).contains(&nanos) || nanos % 1_000 != 0 {
            return Err(Refused);
        }
        let micros = seconds.unwrap_or(0).checked_mul(1_000_000).and_then(|micros| micros.checked_add(nanos / 1_000));
        micros.filter(|micros| MICROS.contains(micros)).ok_or(Refused)
    }

    /// A message of which one field counts.
    fn wrapped(&mut self, plan: &Plan, number: u32, op: &Op, column: &mut Column, end: usize) -> Read<()> {
        let end = self.end(end)?;
        let mut there = false;
        while self.at < end {
            match self.tag()? {
                (found, wire) if found == number => {
                    if wire != op.wire() || std::mem::replace(&mut there, true) {
                        return Err(Refused);
                    }
                    self.scalar(plan, op, column, end)?;
                }
                (_, wire) => self.skip(wire, end)?,
            }
        }
        if !there {
            self.default(plan, op, column)?;
        }
        if self.at == end { Ok(()) } else { Err(Refused) }
    }

    #[inline(never)]
    fn scalar(&mut self, plan: &Plan, op: &Op, column: &mut Column, end: usize) -> Read<()> {
        match op {
            Op::Wrapped(..) | Op::Message(_) => Err(Refused),
            _ => self.value(plan, op, column, end),
        }
    }

    /// What stands for a value that is not there.
    fn default(&mut self, plan: &Plan, op: &Op, column: &mut Column) -> Read<()> {
        match (op, &mut column.kind) {
            (Op::Wrapped(_, inner), _) => return self.default(plan, plan.op(*inner), column),
            (Op::Message(message), Kind::Struct(object)) => self.message(plan, message, object, self.at)?,
            (Op::Enum(names), Kind::Text(texts)) => self.name(names.of(0).ok_or(Refused)?, texts)?,
            (_, Kind::Bool(bits)) => bits.push(false),
            (_, Kind::Int(v) | Kind::Date(v)) => v.push(0),
            (_, Kind::Long(v) | Kind::Time(v, _)) => v.push(0),
            (_, Kind::Float(v)) => v.push(0.0),
            (_, Kind::Double(v)) => v.push(0.0),
            (_, Kind::Decimal(v, ..)) => v.push(0),
            (_, Kind::Text(texts) | Kind::Bytes(texts)) => texts.end(),
            _ => return Err(Refused),
        }
        column.mark();
        Ok(())
    }
}

/// At the column's scale, which leaves room for all numbers of 64 bits.
fn scaled(number: u64, scale: i8) -> i128 {
    number as i128 * 10_i128.pow(scale as u32)
}
