//! A batch of values of Avro or Protobuf to a batch of columns, each value by the schema that it names.
use std::collections::{HashMap, HashSet};

use arrow_array::StructArray;
use arrow_schema::{ArrowError, Fields};

use crate::avro;
use crate::avro::datum::Datum;
use crate::budget::Failure;
use crate::by_schema::framing::{Framing, header};
use crate::by_schema::plan::Described;
use crate::columns::Object;
use crate::parser::{Read, Refused};
use crate::protobuf;
use crate::protobuf::message::Wire;
use crate::rows::places;

/// Schemas that are known at once, and types of all of them together; then all are asked for anew.
const SCHEMAS_MAX: usize = 1_000;
const OPS_KEPT_MAX: usize = 1_000_000;
/// Schemas that one batch asks for.
const ASKED_MAX: usize = 100;
/// Of a schema by which nothing is read here.
const UNREAD: usize = usize::MAX;

/// Bytes of all, and where each begins: see `rows::Rows::decode`.
pub type Values<'a> = (&'a [u8], &'a [i64]);

#[derive(Clone, Copy)]
pub enum Format {
    Avro,
    Protobuf,
}

impl Format {
    /// By the name that it has in the configuration.
    pub fn named(name: &str) -> Option<Format> {
        match name {
            "avro" => Some(Format::Avro),
            "protobuf" => Some(Format::Protobuf),
            _ => None,
        }
    }
}

enum Plan {
    Avro(avro::plan::Plan),
    Protobuf(protobuf::plan::Plan),
}

impl Plan {
    fn new(format: Format, types: Vec<Described>, columns: &Object) -> Result<Plan, String> {
        Ok(match format {
            Format::Avro => Plan::Avro(avro::plan::Plan::new(types, columns)?),
            Format::Protobuf => Plan::Protobuf(protobuf::plan::Plan::new(types, columns)?),
        })
    }

    fn len(&self) -> usize {
        match self {
            Plan::Avro(plan) => plan.len(),
            Plan::Protobuf(plan) => plan.len(),
        }
    }
}

pub enum Decoded {
    /// The rows of the values that are taken, and the places of the others.
    Rows(StructArray, Vec<i64>),
    /// Keys of schemas that are not known, as values or headers spell them: nothing was decoded.
    Unknown(Vec<Vec<u8>>),
}

/// Makes rows of values, for one table.
pub struct Records {
    object: Object,
    format: Format,
    framing: Framing,
    header: Vec<u8>,
    known: HashMap<Vec<u8>, usize>,
    plans: Vec<Plan>,
    ops: usize,
}

impl Records {
    /// `header`: the name of the one that names a value's schema. Answers with a sentence for a type that is not read
    /// here.
    pub fn new(fields: &Fields, format: Format, framing: Framing, header: &[u8]) -> Result<Records, String> {
        Ok(Records {
            object: Object::new(fields, 1)?,
            format,
            framing,
            header: header.to_vec(),
            known: HashMap::new(),
            plans: Vec::new(),
            ops: 0,
        })
    }

    /// How values of this schema are read; None: not here. Answers with a sentence where it is not described as types
    /// that go into the columns are; then it is as if it was None.
    pub fn learn(&mut self, key: &[u8], described: Option<Vec<Described>>) -> Result<(), String> {
        let made = described.map(|types| Plan::new(self.format, types, &self.object)).transpose();
        let more = made.as_ref().ok().and_then(Option::as_ref).map_or(0, Plan::len);
        if self.known.len() >= SCHEMAS_MAX || self.ops + more > OPS_KEPT_MAX {
            self.known.clear();
            self.plans.clear();
            self.ops = 0;
        }
        let place = match &made {
            Ok(Some(_)) => self.plans.len(),
            _ => UNREAD,
        };
        self.known.insert(key.to_vec(), place);
        if let Some(plan) = made? {
            self.ops += more;
            self.plans.push(plan);
        }
        Ok(())
    }

    /// `headers`: of each value, as Lockstep packs them. Answers with a sentence where values or headers are not given
    /// as they are to be.
    pub fn decode(&mut self, values: Values, headers: Option<Values>) -> Result<Decoded, Failure> {
        let whole = places(values.0, values.1)?;
        let heads = headers.map(|(data, starts)| places(data, starts)).transpose()?;
        if heads.as_ref().is_some_and(|heads| heads.len() != whole.len()) {
            return Err("there are not as many headers as values".into());
        }
        let batch = Batch { data: values.0, places: whole, headers: headers.map(|(data, _)| data).zip(heads) };
        match self.rows::<false>(&batch) {
            Err(End::Columns(_)) => {} // some text is no UTF-8
            done => return decoded(done),
        }
        decoded(self.rows::<true>(&batch))
    }

    fn rows<const SURE: bool>(&mut self, batch: &Batch) -> Made {
        self.object.truncate(0);
        self.object.begin(batch.places.len(), batch.data.len());
        let (mut datum, mut wire) = (Datum::<SURE>::new(batch.data), Wire::<SURE>::new(batch.data));
        let (mut rows, mut refused) = (0, Vec::new());
        let (mut last_key, mut last_plan): (Option<&[u8]>, usize) = (None, UNREAD);
        for (i, (from, to)) in batch.places.iter().enumerate() {
            let done = match self.named(batch, i) {
                Err(Refused) => Err(Refused),
                Ok((key, begin)) => {
                    if !last_key.is_some_and(|last| same(last, key)) {
                        let Some(place) = self.known.get(key) else {
                            return Err(End::Unknown(self.unknown(batch, i)));
                        };
                        (last_key, last_plan) = (Some(key), *place);
                    }
                    match self.plans.get(last_plan) {
                        Some(Plan::Avro(plan)) => datum.row(from + begin, *to, plan, &mut self.object),
                        Some(Plan::Protobuf(plan)) => wire.row(from + begin, *to, plan, &mut self.object),
                        None => Err(Refused),
                    }
                }
            };
            if done.is_ok() {
                rows += 1;
            } else {
                self.object.truncate(rows);
                refused.push(i as i64);
            }
            if batch.places.len() > 1 && (datum.budget.is_over() || wire.budget.is_over()) {
                return Err(End::TooLarge);
            }
        }
        self.object.finish(None, rows).map(|columns| (columns, refused)).map_err(End::Columns)
    }

    /// Of a value the key of its schema, and where its datum begins.
    #[inline(always)]
    fn named<'a>(&self, batch: &Batch<'a>, i: usize) -> Read<(&'a [u8], usize)> {
        let (from, to) = batch.places[i];
        if from == to {
            return Err(Refused);
        }
        let named = match &batch.headers {
            Some((data, places)) if places[i].0 < places[i].1 => header(&data[places[i].0..places[i].1], &self.header)?,
            _ => None,
        };
        self.framing.split(&batch.data[from..to], named)
    }

    /// Keys of the first schemas that are not known, from this record on, in their order.
    fn unknown(&self, batch: &Batch, from: usize) -> Vec<Vec<u8>> {
        let (mut asked, mut seen) = (Vec::new(), HashSet::new());
        for i in from..batch.places.len() {
            if let Ok((key, _)) = self.named(batch, i)
                && !self.known.contains_key(key)
                && seen.insert(key)
            {
                asked.push(key.to_vec());
                if asked.len() >= ASKED_MAX {
                    break;
                }
            }
        }
        asked
    }
}

type Made = Result<(StructArray, Vec<i64>), End>;

/// What ends the decoding of a batch without columns.
enum End {
    /// Keys of schemas that are not known.
    Unknown(Vec<Vec<u8>>),
    TooLarge,
    /// The columns cannot be made.
    Columns(ArrowError),
}

fn decoded(made: Made) -> Result<Decoded, Failure> {
    match made {
        Ok((columns, refused)) => Ok(Decoded::Rows(columns, refused)),
        Err(End::Unknown(keys)) => Ok(Decoded::Unknown(keys)),
        Err(End::TooLarge) => Err(Failure::TooLarge),
        Err(End::Columns(error)) => Err(Failure::Wrong(error.to_string())),
    }
}

struct Batch<'a> {
    data: &'a [u8],
    /// From where to where each value is.
    places: Vec<(usize, usize)>,
    /// Bytes of headers, and from where to where each value's are.
    headers: Option<(&'a [u8], Vec<(usize, usize)>)>,
}

/// Without a call, for a few bytes as mostly: of none it would be a slow one, of an address that there is not.
#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    match (a.split_first_chunk::<5>(), b.split_first_chunk::<5>()) {
        (Some((a, x)), Some((b, y))) => a == b && x.len() == y.len() && x.iter().zip(y).all(|(x, y)| x == y),
        _ => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b),
    }
}
