//! What the plans of formats share: how types are told from outside, and which columns are there.
use crate::columns::{Column, Object};

/// Of one schema. One of 20,000 types is the largest that is parsed (`participant/records/avro/schema.py`); those that
/// are read into columns are there once for each.
pub const OPS_MAX: usize = 100_000;
/// Whoever reads a value calls itself for each level. A schema has 64.
const DEPTH_MAX: u32 = 80;
/// In place of a column: the value is read over. Of a oneof: it is in none.
pub const NONE: i64 = -1;

/// A type as it is described from outside: its name; numbers, and texts, which mean what `made` in the formats' `plan`
/// says.
pub type Described = (String, Vec<i64>, Vec<String>);

/// How deep types are, of which each holds only those before it.
#[derive(Default)]
pub struct Depths(Vec<u32>);

impl Depths {
    /// One more, which holds the types at these places.
    pub fn push(&mut self, inside: impl Iterator<Item = u32>) -> Result<(), String> {
        let depth = 1 + inside.map(|i| self.0[i as usize]).max().unwrap_or(0);
        if depth > DEPTH_MAX {
            return Err(format!("types are nested deeper than {DEPTH_MAX} levels"));
        }
        self.0.push(depth);
        Ok(())
    }
}

/// The place of a type, where so many stand before it.
pub fn place(n: i64, before: usize) -> Option<u32> {
    u32::try_from(n).ok().filter(|n| (*n as usize) < before)
}

/// Which column a field becomes, if any. None where it is neither.
pub fn column(n: i64) -> Option<Option<u32>> {
    if n == NONE { Some(None) } else { Some(Some(u32::try_from(n).ok()?)) }
}

/// Columns of an object that fields become, each once.
pub struct Taken<'a> {
    columns: &'a Object,
    taken: Vec<bool>,
}

impl<'a> Taken<'a> {
    pub fn of(columns: &'a Object) -> Taken<'a> {
        Taken { columns, taken: vec![false; columns.columns.len()] }
    }

    pub fn take(&mut self, at: u32) -> Result<&'a Column, String> {
        let (Some(column), Some(taken)) = (self.columns.columns.get(at as usize), self.taken.get_mut(at as usize))
        else {
            return Err("a column that there is not".into());
        };
        if std::mem::replace(taken, true) {
            return Err("a column is read twice".into());
        }
        Ok(column)
    }

    /// Those that no field becomes.
    pub fn absent(self) -> Result<Vec<u32>, String> {
        let absent: Vec<u32> = (0..self.taken.len()).filter(|at| !self.taken[*at]).map(|at| at as u32).collect();
        if absent.iter().any(|at| !self.columns.columns[*at as usize].nullable) {
            return Err("a column is required, and not there".into());
        }
        Ok(absent)
    }
}
