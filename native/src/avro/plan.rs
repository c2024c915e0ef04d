//! How values of one schema are read: its types, children before those that hold them, and which column each goes into.
//!
//! Which type goes into which column `participant/records/avro/columns.py` decides; here is only seen to it that nothing
//! else is ever read.
use crate::by_schema::plan::{Depths, Described, OPS_MAX, Taken, column, place};
use crate::columns::{Column, Kind, Object};

/// Digits of the largest decimal.
const DIGITS_MAX: u32 = 38;

/// What is read, of a schema's type and of what it becomes.
pub enum Op {
    Null,
    Boolean,
    Int,
    Date,
    Long,
    Millis,
    Micros,
    Float,
    Double,
    Bytes,
    String,
    /// Of 16 bytes, spelled with dashes.
    Uuid,
    /// Of so many bytes.
    Fixed(usize),
    Decimal(Decimal),
    Enum(Symbols),
    /// Places of its branches.
    Union(Vec<u32>),
    Array(u32),
    Map(u32),
    Record(Fields),
}

pub struct Decimal {
    /// Of a fixed; None of bytes.
    pub size: Option<usize>,
    /// Numbers are smaller.
    pub limit: i128,
    /// By which a number is multiplied, to have the column's scale.
    pub factor: i128,
}

#[derive(Default)]
pub struct Symbols {
    data: Vec<u8>,
    ends: Vec<usize>,
}

impl Symbols {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn at(&self, i: usize) -> &[u8] {
        let from = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.data[from..self.ends[i]]
    }
}

#[derive(Default)]
pub struct Fields {
    /// Of each field its type's place, and which column it becomes.
    pub steps: Vec<(u32, Option<u32>)>,
    /// Columns that no field becomes.
    pub absent: Vec<u32>,
}

/// Of one schema and the columns of one table.
pub struct Plan {
    ops: Vec<Op>,
}

impl Plan {
    /// The last type is what a value is. Answers with a sentence where these are no types that go into the columns.
    pub fn new(described: Vec<Described>, columns: &Object) -> Result<Plan, String> {
        if described.len() > OPS_MAX {
            return Err(format!("a schema of more than {OPS_MAX} types"));
        }
        let mut plan = Plan { ops: Vec::with_capacity(described.len()) };
        let mut depths = Depths::default();
        let mut bytes: Vec<bool> = Vec::with_capacity(described.len());
        for one in described {
            let name = one.0.clone();
            let op = made(one, plan.ops.len()).ok_or_else(|| format!("a type {name} that is described otherwise"))?;
            depths.push(op.inside())?;
            let takes = op.takes_a_byte(&bytes);
            // Else a few bytes could say how many of them there are, and how often each holds others
            if !takes && !matches!(op, Op::Null) {
                return Err("a type that takes no byte".into());
            }
            bytes.push(takes);
            plan.ops.push(op);
        }
        let last = plan.ops.len().checked_sub(1).ok_or("a schema without a type")?;
        plan.join(last as u32, columns)?;
        Ok(plan)
    }

    pub fn len(&self) -> usize {
        self.ops.len()
    }

    #[inline(always)]
    pub fn op(&self, place: u32) -> &Op {
        &self.ops[place as usize]
    }

    /// What a value is.
    pub fn top(&self) -> &Fields {
        match self.ops.last() {
            Some(Op::Record(fields)) => fields,
            _ => unreachable!("a plan is of a record"),
        }
    }

    /// Sees to it that a record goes into these columns, and notes those that it does not have.
    fn join(&mut self, place: u32, columns: &Object) -> Result<(), String> {
        let Op::Record(fields) = self.op(place) else { return Err("a value is a record".into()) };
        let steps = fields.steps.clone();
        let mut taken = Taken::of(columns);
        for (inner, column) in steps {
            let Some(at) = column else { continue };
            self.fit(inner, taken.take(at)?)?;
        }
        let absent = taken.absent()?;
        if let Op::Record(fields) = &mut self.ops[place as usize] {
            fields.absent = absent;
        }
        Ok(())
    }

    fn fit(&mut self, place: u32, column: &Column) -> Result<(), String> {
        let inner = match (self.op(place), &column.kind) {
            (Op::Union(branches), _) => {
                let real: Vec<u32> = branches.iter().copied().filter(|b| !matches!(self.op(*b), Op::Null)).collect();
                return match real[..] {
                    [one] if !matches!(self.op(one), Op::Union(_)) => self.fit(one, column),
                    _ => Err("a union of several types".into()),
                };
            }
            (Op::Record(_), Kind::Struct(object)) => return self.join(place, object),
            (Op::Array(inner), Kind::List(_, _, item)) => (*inner, &**item),
            (Op::Map(inner), Kind::Map(map)) => (*inner, &map.items),
            (op, kind) if op.goes_into(kind) => return Ok(()),
            _ => return Err("a type that does not go into its column".into()),
        };
        self.fit(inner.0, inner.1)
    }
}

impl Op {
    /// Of what holds no others.
    fn goes_into(&self, kind: &Kind) -> bool {
        matches!(
            (self, kind),
            (Op::Boolean, Kind::Bool(_))
                | (Op::Int, Kind::Int(_) | Kind::Long(_) | Kind::Double(_))
                | (Op::Date, Kind::Date(_))
                | (Op::Long, Kind::Long(_))
                | (Op::Millis | Op::Micros, Kind::Time(..))
                | (Op::Float, Kind::Float(_) | Kind::Double(_))
                | (Op::Double, Kind::Double(_))
                | (Op::Bytes | Op::Fixed(_), Kind::Bytes(_))
                | (Op::String | Op::Uuid | Op::Enum(_), Kind::Text(_))
                | (Op::Decimal(_), Kind::Decimal(..))
        )
    }

    /// Whether a value takes a byte at least; `others`: likewise, of those before it.
    fn takes_a_byte(&self, others: &[bool]) -> bool {
        match self {
            Op::Null => false,
            Op::Record(fields) => fields.steps.iter().any(|(inner, _)| others[*inner as usize]),
            Op::Array(inner) => others[*inner as usize],
            _ => true,
        }
    }

    /// Places of those that it holds.
    fn inside(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Op::Union(inner) => Box::new(inner.iter().copied()),
            Op::Array(inner) | Op::Map(inner) => Box::new([*inner].into_iter()),
            Op::Record(fields) => Box::new(fields.steps.iter().map(|(inner, _)| *inner)),
            _ => Box::new([].into_iter()),
        }
    }
}

/// A type of which so many stand before it. None where it is not described as it is to be.
fn made((name, numbers, texts): Described, before: usize) -> Option<Op> {
    let place = |n: &i64| place(*n, before);
    let size = |n: i64| usize::try_from(n).ok().filter(|n| (1..=1 << 20).contains(n));
    Some(match (name.as_str(), &numbers[..]) {
        ("null", []) => Op::Null,
        ("boolean", []) => Op::Boolean,
        ("int", []) => Op::Int,
        ("date", []) => Op::Date,
        ("long", []) => Op::Long,
        ("millis", []) => Op::Millis,
        ("micros", []) => Op::Micros,
        ("float", []) => Op::Float,
        ("double", []) => Op::Double,
        ("bytes", []) => Op::Bytes,
        ("string", []) => Op::String,
        ("uuid", []) => Op::Uuid,
        ("fixed", [bytes]) => Op::Fixed(size(*bytes)?),
        ("decimal", [bytes, digits, places]) => Op::Decimal(decimal(*bytes, *digits, *places)?),
        ("enum", []) => {
            let mut symbols = Symbols::default();
            for text in texts {
                symbols.data.extend_from_slice(text.as_bytes());
                symbols.ends.push(symbols.data.len());
            }
            Op::Enum(symbols)
        }
        ("union", branches) => Op::Union(branches.iter().map(place).collect::<Option<_>>()?),
        ("array", [item]) => Op::Array(place(item)?),
        ("map", [value]) => Op::Map(place(value)?),
        ("record", pairs) if pairs.len() % 2 == 0 => {
            let step = |pair: &[i64]| Some((place(&pair[0])?, column(pair[1])?));
            let steps = pairs.chunks_exact(2).map(step).collect::<Option<_>>()?;
            Op::Record(Fields { steps, absent: Vec::new() })
        }
        _ => return None,
    })
}

/// Of `bytes` bytes, or of any number (0), and so many digits, at so many places more.
fn decimal(bytes: i64, digits: i64, places: i64) -> Option<Decimal> {
    let (digits, places) = (u32::try_from(digits).ok()?, u32::try_from(places).ok()?);
    if digits == 0 || digits.checked_add(places)? > DIGITS_MAX {
        return None;
    }
    let size = if bytes == 0 { None } else { Some(usize::try_from(bytes).ok()?) };
    Some(Decimal { size, limit: 10_i128.pow(digits), factor: 10_i128.pow(places) })
}
