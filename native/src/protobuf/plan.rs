//! How messages of one type are read: its fields' types, those that others hold before them, and which column each goes
//! into.
//!
//! Which field goes into which column `participant/records/protobuf/columns.py` decides; here is only seen to it that
//! nothing else is ever read.
use crate::by_schema::plan::{Depths, Described, NONE, OPS_MAX, Taken, column, place};
use crate::columns::{Column, Kind, Object};

/// The largest number of a field.
const NUMBER_MAX: i64 = (1 << 29) - 1;
/// Members of a oneof are told apart by a bit each.
const ONEOFS_MAX: usize = 64;
const NUMBERS_OF_FIELD: usize = 6;

pub const VARINT: u8 = 0;
pub const I64: u8 = 1;
pub const LEN: u8 = 2;
pub const I32: u8 = 5;

/// What is read, of a field's type and of what it becomes.
pub enum Op {
    Bool,
    /// Also an enum's number.
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Float,
    Double,
    String,
    Bytes,
    Enum(Names),
    Timestamp,
    /// The number of the one field of a message that counts, and its type's place.
    Wrapped(u32, u32),
    Message(Message),
}

/// Numbers that ascend, and the name of each.
pub struct Names {
    numbers: Vec<i64>,
    texts: Vec<String>,
}

impl Names {
    pub fn of(&self, number: i64) -> Option<&[u8]> {
        let at = self.numbers.binary_search(&number).ok()?;
        self.texts.get(at).map(|text| text.as_bytes())
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    Single,
    Repeated,
    /// The type is the value's.
    Map,
}

/// What a field is that is not set.
#[derive(Clone, Copy, PartialEq)]
pub enum Unset {
    Default,
    Null,
    /// The message is none.
    Refused,
}

#[derive(Clone, Copy)]
pub struct Field {
    pub number: u32,
    pub op: u32,
    /// None: it is read over, but unsets others of its oneof.
    pub column: Option<u32>,
    pub mode: Mode,
    /// A bit for its oneof; 0 where it is in none.
    pub oneof: u64,
    pub unset: Unset,
}

pub struct Message {
    /// How many values one has, at least.
    pub values: u64,
    /// By their numbers.
    pub fields: Vec<Field>,
    /// Columns that no field becomes.
    pub absent: Vec<u32>,
}

/// Of one type of messages and the columns of one table.
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
        for one in described {
            let name = one.0.clone();
            let op = made(one, plan.ops.len()).ok_or_else(|| format!("a type {name} that is described otherwise"))?;
            depths.push(op.inside())?;
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
    pub fn top(&self) -> &Message {
        match self.ops.last() {
            Some(Op::Message(message)) => message,
            _ => unreachable!("a plan is of a message"),
        }
    }

    /// Sees to it that a message goes into these columns, and notes those that it does not have.
    fn join(&mut self, place: u32, columns: &Object) -> Result<(), String> {
        let Op::Message(message) = self.op(place) else { return Err("a value is a message".into()) };
        let fields = message.fields.clone();
        let mut taken = Taken::of(columns);
        for field in fields {
            let Some(at) = field.column else { continue };
            let column = taken.take(at)?;
            match (field.mode, &column.kind) {
                (Mode::Single, _) => self.fit(field.op, column)?,
                (Mode::Repeated, Kind::List(_, _, item)) => self.fit(field.op, item)?,
                (Mode::Map, Kind::Map(map)) => self.fit(field.op, &map.items)?,
                _ => return Err("a type that does not go into its column".into()),
            }
        }
        let absent = taken.absent()?;
        if let Op::Message(message) = &mut self.ops[place as usize] {
            message.absent = absent;
        }
        Ok(())
    }

    fn fit(&mut self, place: u32, column: &Column) -> Result<(), String> {
        match (self.op(place), &column.kind) {
            (Op::Message(_), Kind::Struct(object)) => self.join(place, object),
            (Op::Wrapped(_, inner), _) if !matches!(self.op(*inner), Op::Message(_) | Op::Wrapped(..)) => {
                self.fit(*inner, column)
            }
            (op, kind) if op.goes_into(kind) => Ok(()),
            _ => Err("a type that does not go into its column".into()),
        }
    }
}

impl Op {
    /// Of what is no message.
    fn goes_into(&self, kind: &Kind) -> bool {
        match (self, kind) {
            (Op::Int32 | Op::Sint32 | Op::Sfixed32, Kind::Int(_) | Kind::Long(_) | Kind::Double(_)) => true,
            (Op::Uint32 | Op::Fixed32, Kind::Long(_) | Kind::Double(_)) => true,
            (Op::Uint64 | Op::Fixed64, Kind::Decimal(_, digits, scale)) => {
                (20..=38).contains(&(*digits as i16 - *scale as i16))
            }
            (op, kind) => matches!(
                (op, kind),
                (Op::Bool, Kind::Bool(_))
                    | (Op::Int64 | Op::Sint64 | Op::Sfixed64, Kind::Long(_))
                    | (Op::Float, Kind::Float(_) | Kind::Double(_))
                    | (Op::Double, Kind::Double(_))
                    | (Op::String | Op::Enum(_), Kind::Text(_))
                    | (Op::Bytes, Kind::Bytes(_))
                    | (Op::Timestamp, Kind::Time(..))
            ),
        }
    }

    /// Places of those that it holds.
    fn inside(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Op::Wrapped(_, inner) => Box::new([*inner].into_iter()),
            Op::Message(message) => Box::new(message.fields.iter().map(|field| field.op)),
            _ => Box::new([].into_iter()),
        }
    }

    /// How it is spelled.
    pub fn wire(&self) -> u8 {
        match self {
            Op::Fixed32 | Op::Sfixed32 | Op::Float => I32,
            Op::Fixed64 | Op::Sfixed64 | Op::Double => I64,
            Op::String | Op::Bytes | Op::Timestamp | Op::Wrapped(..) | Op::Message(_) => LEN,
            _ => VARINT,
        }
    }

    /// Whether it is spelled with the number of its bytes before it; else several may be packed.
    pub fn has_length(&self) -> bool {
        self.wire() == LEN
    }

    /// How many values one has, at least, where it is one of several.
    pub fn values(&self) -> u64 {
        match self {
            Op::Message(message) => message.values,
            _ => 1,
        }
    }
}

/// A type of which so many stand before it. None where it is not described as it is to be: an enum by its numbers, which
/// ascend, and names; what is wrapped by number and type; a message by how many values it has, and of each field
/// number, type, column, mode, oneof, and what it is unset.
fn made((name, numbers, texts): Described, before: usize) -> Option<Op> {
    let place = |n: i64| place(n, before);
    let number = |n: i64| (1..=NUMBER_MAX).contains(&n).then_some(n as u32);
    Some(match (name.as_str(), &numbers[..]) {
        ("bool", []) => Op::Bool,
        ("int32", []) => Op::Int32,
        ("int64", []) => Op::Int64,
        ("uint32", []) => Op::Uint32,
        ("uint64", []) => Op::Uint64,
        ("sint32", []) => Op::Sint32,
        ("sint64", []) => Op::Sint64,
        ("fixed32", []) => Op::Fixed32,
        ("fixed64", []) => Op::Fixed64,
        ("sfixed32", []) => Op::Sfixed32,
        ("sfixed64", []) => Op::Sfixed64,
        ("float", []) => Op::Float,
        ("double", []) => Op::Double,
        ("string", []) => Op::String,
        ("bytes", []) => Op::Bytes,
        ("timestamp", []) => Op::Timestamp,
        ("enum", _) => {
            let ascend = numbers.windows(2).all(|pair| pair[0] < pair[1]);
            if !ascend || numbers.len() != texts.len() {
                return None;
            }
            Op::Enum(Names { numbers, texts })
        }
        ("wrapped", [n, inner]) => Op::Wrapped(number(*n)?, place(*inner)?),
        ("message", [values, fields @ ..]) if fields.len() % NUMBERS_OF_FIELD == 0 => {
            let field = |one: &[i64]| {
                Some(Field {
                    number: number(one[0])?,
                    op: place(one[1])?,
                    column: column(one[2])?,
                    mode: [Mode::Single, Mode::Repeated, Mode::Map].get(usize::try_from(one[3]).ok()?).copied()?,
                    oneof: match one[4] {
                        NONE => 0,
                        bit => 1 << usize::try_from(bit).ok().filter(|bit| *bit < ONEOFS_MAX)?,
                    },
                    unset: [Unset::Default, Unset::Null, Unset::Refused].get(usize::try_from(one[5]).ok()?).copied()?,
                })
            };
            let fields: Vec<Field> = fields.chunks_exact(NUMBERS_OF_FIELD).map(field).collect::<Option<_>>()?;
            let ascend = fields.windows(2).all(|pair| pair[0].number < pair[1].number);
            let over = fields.iter().any(|f| f.column.is_none() && f.mode != Mode::Single);
            if !ascend || over {
                return None;
            }
            Op::Message(Message { values: u64::try_from(*values).ok()?, fields, absent: Vec::new() })
        }
        _ => return None,
    })
}
