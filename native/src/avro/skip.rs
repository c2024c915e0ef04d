//! What becomes of no column is read as strictly: what follows stands behind it.
use std::collections::HashSet;

use crate::avro::datum::Datum;
use crate::avro::plan::{Op, Plan};
use crate::parser::{Read, Refused};

impl<const SURE: bool> Datum<'_, SURE> {
    pub(super) fn skip(&mut self, plan: &Plan, op: &Op) -> Read<()> {
        match op {
            Op::Null => {}
            Op::Boolean => drop(self.boolean()?),
            Op::Int | Op::Date => drop(self.int()?),
            Op::Long | Op::Millis | Op::Micros => drop(self.long()?),
            Op::Float => drop(self.fixed(4)?),
            Op::Double => drop(self.fixed(8)?),
            Op::Uuid => drop(self.fixed(16)?),
            Op::Fixed(count) => drop(self.fixed(*count)?),
            Op::Bytes => drop(self.bytes()?),
            Op::String => drop(self.skip_text()?),
            Op::Enum(symbols) => drop(self.index(symbols.len())?),
            Op::Union(branches) => {
                let branch = self.index(branches.len())?;
                self.skip(plan, plan.op(branches[branch]))?;
            }
            Op::Array(item) => self.skip_items(plan, plan.op(*item))?,
            Op::Map(value) => self.skip_entries(plan, plan.op(*value))?,
            Op::Record(fields) => {
                for (inner, _) in &fields.steps {
                    self.skip(plan, plan.op(*inner))?;
                }
            }
            Op::Decimal(_) => return Err(Refused),
        }
        Ok(())
    }

    /// Answers how many bytes it has.
    fn skip_text(&mut self) -> Read<usize> {
        let text = self.bytes()?;
        if simdutf8::basic::from_utf8(text).is_ok() { Ok(text.len()) } else { Err(Refused) }
    }

    fn skip_items(&mut self, plan: &Plan, op: &Op) -> Read<()> {
        loop {
            let (count, end) = self.block()?;
            if count == 0 {
                return Ok(());
            }
            for _ in 0..count {
                self.skip(plan, op)?;
            }
            self.is_at(end)?;
        }
    }

    fn skip_entries(&mut self, plan: &Plan, op: &Op) -> Read<()> {
        let before = self.keys.len();
        loop {
            let (count, end) = self.block()?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                let count = self.skip_text()?;
                self.keys.push((self.at - count, self.at));
                self.skip(plan, op)?;
            }
            self.is_at(end)?;
        }
        let found = &self.keys[before..];
        let mut seen = HashSet::with_capacity(found.len());
        let once = found.iter().all(|(from, to)| seen.insert(&self.data[*from..*to]));
        self.keys.truncate(before);
        if once { Ok(()) } else { Err(Refused) }
    }
}
