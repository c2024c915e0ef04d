//! The binary encoding of Avro into columns. Source: Avro 1.12, "Binary Encoding".
//!
//! Nothing is allocated for what is only announced. Where `SURE` is false, texts that go into columns are not looked at:
//! whether they are UTF-8 is found out of all of them at once, when the columns are made.
use crate::avro::plan::{Decimal, Fields, Op, Plan};
use crate::budget::Budget;
use crate::buffers::Texts;
use crate::columns::{Column, Kind, Map, Object};
use crate::parser::{Read, Refused};
use crate::rows::BYTES_MAX;
use crate::texts::{DAYS, MICROS};

const HEX: &[u8; 16] = b"0123456789abcdef";
/// Bytes of a UUID before which a dash stands.
const DASHED: [usize; 4] = [4, 6, 8, 10];
const UUID_BYTES: usize = 16;

/// One value after another.
pub struct Datum<'a, const SURE: bool> {
    whole: &'a [u8],
    /// To the end of the value.
    pub(super) data: &'a [u8],
    pub(super) at: usize,
    /// From where to where the keys of maps are that are read over, so far as they are open.
    pub(super) keys: Vec<(usize, usize)>,
    pub budget: Budget,
}

impl<'a, const SURE: bool> Datum<'a, SURE> {
    pub fn new(whole: &'a [u8]) -> Self {
        Datum { whole, data: &whole[..0], at: 0, keys: Vec::new(), budget: Budget::default() }
    }

    /// What stands from `from` to `to` as one row. Where it is refused the columns hold a part of it.
    pub fn row(&mut self, from: usize, to: usize, plan: &Plan, object: &mut Object) -> Read<()> {
        self.data = &self.whole[..to];
        self.at = from;
        self.keys.clear();
        self.budget.begin(to - from);
        self.record(plan, plan.top(), object)?;
        if self.at == to { Ok(()) } else { Err(Refused) }
    }

    // --- what values are made of --------------------------------------------------------------------

    #[inline(always)]
    pub(super) fn byte(&mut self) -> Read<u8> {
        let byte = *self.data.get(self.at).ok_or(Refused)?;
        self.at += 1;
        Ok(byte)
    }

    /// Variable-length, zig-zag. It may be spelled with more bytes than it needs.
    #[inline(always)]
    pub(super) fn long(&mut self) -> Read<i64> {
        let first = *self.data.get(self.at).ok_or(Refused)?;
        if first < 0x80 {
            self.at += 1;
            return Ok(zigzag(first as u64));
        }
        if let Some(eight) = self.data.get(self.at..).and_then(|rest| rest.first_chunk::<8>())
            && let Some((number, count)) = within_eight(u64::from_le_bytes(*eight))
        {
            self.at += count;
            return Ok(zigzag(number));
        }
        self.any_long()
    }

    #[inline(never)]
    fn any_long(&mut self) -> Read<i64> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return Err(Refused);
            }
            number |= ((byte & 0x7f) as u64) << shift;
            if byte < 0x80 {
                return Ok(zigzag(number));
            }
        }
        Err(Refused)
    }

    #[inline(always)]
    pub(super) fn int(&mut self) -> Read<i32> {
        i32::try_from(self.long()?).map_err(|_| Refused)
    }

    /// A number from zero on that is smaller than `count`.
    #[inline(always)]
    pub(super) fn index(&mut self, count: usize) -> Read<usize> {
        let index = usize::try_from(self.long()?).map_err(|_| Refused)?;
        if index < count { Ok(index) } else { Err(Refused) }
    }

    /// So many bytes.
    #[inline(always)]
    pub(super) fn fixed(&mut self, count: usize) -> Read<&'a [u8]> {
        let rest = self.data.get(self.at..).ok_or(Refused)?;
        let bytes = rest.get(..count).ok_or(Refused)?;
        self.at += count;
        Ok(bytes)
    }

    /// A length, and so many bytes.
    #[inline(always)]
    pub(super) fn bytes(&mut self) -> Read<&'a [u8]> {
        let count = usize::try_from(self.long()?).map_err(|_| Refused)?;
        self.fixed(count)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let bytes = self.data.get(self.at..).and_then(|rest| rest.first_chunk::<N>()).ok_or(Refused)?;
        self.at += N;
        Ok(*bytes)
    }

    /// Of a block of an array or map: how many there are, none behind the last one, and where it must end.
    pub(super) fn block(&mut self) -> Read<(usize, Option<usize>)> {
        let count = self.long()?;
        let mut end = None;
        if count < 0 {
            let size = usize::try_from(self.long()?).map_err(|_| Refused)?;
            end = self.at.checked_add(size);
            if end.is_none_or(|end| end > self.data.len()) {
                return Err(Refused);
            }
        }
        let count = usize::try_from(count.unsigned_abs()).map_err(|_| Refused)?;
        if count <= self.data.len() - self.at { Ok((count, end)) } else { Err(Refused) }
    }

    #[inline(always)]
    pub(super) fn is_at(&self, end: Option<usize>) -> Read<()> {
        if end.is_none_or(|end| end == self.at) { Ok(()) } else { Err(Refused) }
    }

    // --- into columns -------------------------------------------------------------------------------

    fn record(&mut self, plan: &Plan, fields: &Fields, object: &mut Object) -> Read<()> {
        for (place, column) in &fields.steps {
            match column {
                Some(column) => self.value(plan, plan.op(*place), &mut object.columns[*column as usize])?,
                None => self.skip(plan, plan.op(*place))?,
            }
        }
        for column in &fields.absent {
            object.columns[*column as usize].null();
        }
        Ok(())
    }

    #[inline(always)]
    fn value(&mut self, plan: &Plan, op: &Op, column: &mut Column) -> Read<()> {
        let mut op = op;
        if let Op::Union(branches) = op {
            op = plan.op(branches[self.index(branches.len())?]);
            if let Op::Null = op {
                if !column.nullable {
                    return Err(Refused);
                }
                column.null();
                return Ok(());
            }
        }
        match (op, &mut column.kind) {
            (Op::String, Kind::Text(texts)) => self.text(texts)?,
            (Op::Long, Kind::Long(v)) => v.push(self.long()?),
            (Op::Double, Kind::Double(v)) => v.push(f64::from_le_bytes(self.array()?) + 0.0),
            (Op::Int, Kind::Int(v)) => v.push(self.int()?),
            (Op::Boolean, Kind::Bool(bits)) => bits.push(self.boolean()?),
            (Op::Micros, Kind::Time(v, _)) => v.push(within(self.long()?, 1)?),
            (Op::Millis, Kind::Time(v, _)) => v.push(within(self.long()?, 1_000)?),
            (op, kind) => self.rarer(plan, op, kind)?,
        }
        column.mark();
        Ok(())
    }

    #[inline(never)]
    fn rarer(&mut self, plan: &Plan, op: &Op, kind: &mut Kind) -> Read<()> {
        match (op, kind) {
            (Op::Int, Kind::Long(v)) => v.push(self.int()? as i64),
            (Op::Int, Kind::Double(v)) => v.push(self.int()? as f64),
            (Op::Date, Kind::Date(v)) => v.push(Some(self.int()?).filter(|day| DAYS.contains(day)).ok_or(Refused)?),
            (Op::Float, Kind::Float(v)) => v.push(f32::from_le_bytes(self.array()?) + 0.0),
            (Op::Float, Kind::Double(v)) => v.push(f32::from_le_bytes(self.array()?) as f64 + 0.0),
            (Op::Bytes, Kind::Bytes(texts)) => {
                texts.data.extend_from_slice(self.bytes()?);
                texts.end();
            }
            (Op::Fixed(count), Kind::Bytes(texts)) => {
                texts.data.extend_from_slice(self.fixed(*count)?);
                texts.end();
            }
            (Op::Enum(symbols), Kind::Text(texts)) => {
                let symbol = symbols.at(self.index(symbols.len())?);
                self.budget.spend_name(symbol)?;
                self.longer(symbol, texts)?;
            }
            (Op::Uuid, Kind::Text(texts)) => {
                let spelled = spelled(&self.array()?);
                self.longer(&spelled, texts)?;
            }
            (Op::Decimal(decimal), Kind::Decimal(v, ..)) => v.push(self.decimal(decimal)?),
            (Op::Record(fields), Kind::Struct(object)) => self.record(plan, fields, object)?,
            (Op::Array(item), Kind::List(ends, _, items)) => {
                self.items(plan, plan.op(*item), items)?;
                ends.push(items.len as i32);
            }
            (Op::Map(value), Kind::Map(map)) => self.entries(plan, plan.op(*value), map)?,
            _ => return Err(Refused),
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn boolean(&mut self) -> Read<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Refused),
        }
    }

    #[inline(always)]
    fn text(&mut self, texts: &mut Texts) -> Read<()> {
        let text = self.bytes()?;
        if SURE && simdutf8::basic::from_utf8(text).is_err() {
            return Err(Refused);
        }
        texts.append(text, &self.whole[self.at - text.len()..]);
        texts.end();
        Ok(())
    }

    /// A text that is longer than what it is made of. All others of the batch must still fit behind it.
    fn longer(&mut self, text: &[u8], texts: &mut Texts) -> Read<()> {
        if texts.data.len() + text.len() + self.whole.len() > BYTES_MAX {
            return Err(Refused);
        }
        texts.data.extend_from_slice(text);
        texts.end();
        Ok(())
    }

    fn decimal(&mut self, decimal: &Decimal) -> Read<i128> {
        let bytes = match decimal.size {
            Some(count) => self.fixed(count)?,
            None => self.bytes()?,
        };
        let sign = if *bytes.first().ok_or(Refused)? < 0x80 { 0 } else { 0xff };
        let (more, last) = bytes.split_at(bytes.len().saturating_sub(16));
        let mut sixteen = [sign; 16];
        sixteen[16 - last.len()..].copy_from_slice(last);
        let number = i128::from_be_bytes(sixteen);
        let whole = more.iter().all(|byte| *byte == sign) && (number < 0) == (sign != 0);
        let within = -decimal.limit < number && number < decimal.limit;
        if whole && within { Ok(number * decimal.factor) } else { Err(Refused) }
    }

    fn items(&mut self, plan: &Plan, op: &Op, items: &mut Column) -> Read<()> {
        loop {
            let (count, end) = self.block()?;
            if count == 0 {
                return Ok(());
            }
            for _ in 0..count {
                self.budget.spend(items.places)?;
                self.value(plan, op, items)?;
            }
            self.is_at(end)?;
        }
    }

    fn entries(&mut self, plan: &Plan, op: &Op, map: &mut Map) -> Read<()> {
        let before = map.keys.len();
        loop {
            let (count, end) = self.block()?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                self.budget.spend(1 + map.items.places)?;
                self.text(&mut map.keys)?;
                self.value(plan, op, &mut map.items)?;
            }
            self.is_at(end)?;
        }
        if map.keys.twice(before) {
            return Err(Refused);
        }
        map.ends.push(map.keys.len() as i32);
        Ok(())
    }
}

#[inline(always)]
pub(crate) fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// A number of at most eight bytes, the first one in the lowest, and how many it takes. None where it takes more.
#[inline(always)]
pub(crate) fn within_eight(w: u64) -> Option<(u64, usize)> {
    let stop = !w & 0x8080_8080_8080_8080;
    if stop == 0 {
        return None;
    }
    // All bits up to the first byte that does not go on
    let w = w & (stop ^ (stop - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
    let w = (w & 0x007f_007f_007f_007f) | (w & 0x7f00_7f00_7f00_7f00) >> 1;
    let w = (w & 0x0000_3fff_0000_3fff) | (w & 0x3fff_0000_3fff_0000) >> 2;
    let w = (w & 0x0000_0000_0fff_ffff) | (w & 0x0fff_ffff_0000_0000) >> 4;
    Some((w, stop.trailing_zeros() as usize / 8 + 1))
}

/// Microseconds of a number of `factor` microseconds each.
#[inline(always)]
fn within(number: i64, factor: i64) -> Read<i64> {
    number.checked_mul(factor).filter(|micros| MICROS.contains(micros)).ok_or(Refused)
}

fn spelled(bytes: &[u8; UUID_BYTES]) -> [u8; 2 * UUID_BYTES + DASHED.len()] {
    let mut text = [b'-'; 2 * UUID_BYTES + DASHED.len()];
    let mut to = 0;
    for (i, byte) in bytes.iter().enumerate() {
        to += DASHED.contains(&i) as usize;
        text[to] = HEX[(byte >> 4) as usize];
        text[to + 1] = HEX[(byte & 15) as usize];
        to += 2;
    }
    text
}
