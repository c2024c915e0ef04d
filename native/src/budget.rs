//! Limits on the values that records become: a value that takes one byte in a record may take a row of many columns.
//!
//! The same numbers as in `participant/records/value_limits.py`, which says what counts.
use crate::parser::{Read, Refused};

/// Values of one record; a longer record may have one for each of its bytes.
pub const VALUES_MAX: u64 = 1_000_000;
/// Values of a batch of several records.
pub const BATCH_VALUES_MAX: u64 = 4_000_000;
/// Bytes of an enum's name that count as one value.
const NAME_BYTES: usize = 16;

/// The values of the record in work, and of the batch up to it.
#[derive(Default)]
pub struct Budget {
    limit: u64,
    left: u64,
    batch: u64,
}

impl Budget {
    /// Start a record of `size_bytes` bytes.
    #[inline(always)]
    pub fn begin(&mut self, size_bytes: usize) {
        self.batch += self.limit - self.left;
        self.limit = VALUES_MAX.max(size_bytes as u64);
        self.left = self.limit;
    }

    /// Count more values before they are made.
    #[inline(always)]
    pub fn spend(&mut self, values: u64) -> Read<()> {
        self.left = self.left.checked_sub(values).ok_or(Refused)?;
        Ok(())
    }

    /// Count a name in the place of its number.
    #[inline(always)]
    pub fn spend_name(&mut self, name: &[u8]) -> Read<()> {
        self.spend((name.len() / NAME_BYTES) as u64)
    }

    /// Whether the records up to here have more values than a batch may have.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.batch + self.limit - self.left > BATCH_VALUES_MAX
    }
}

/// What ends the decoding of a batch without columns.
#[derive(Debug)]
pub enum Failure {
    /// The batch is not given as it is to be: a sentence.
    Wrong(String),
    /// Its records have too many values together; fewer of them at once may pass.
    TooLarge,
}

impl From<String> for Failure {
    fn from(sentence: String) -> Failure {
        Failure::Wrong(sentence)
    }
}

impl From<&str> for Failure {
    fn from(sentence: &str) -> Failure {
        Failure::Wrong(sentence.into())
    }
}
