//! Bits and texts, one behind the other: what columns are made of.
//!
//! Nothing here overflows: a batch has fewer than 2^31 bytes (`rows::BYTES_MAX`), a text is never longer than its
//! JSON, and an item takes at least a byte.
use arrow_buffer::{BooleanBuffer, Buffer, OffsetBuffer, ScalarBuffer};

/// So far before its turn memory is brought near: some values ahead, of short texts as well.
const AHEAD_BYTES: usize = 128;

/// Brings near what is to be written behind the values. A row writes to so many places that the processor does not
/// see by itself where each goes on, and would wait for memory at every 64 bytes.
#[inline(always)]
pub fn ahead<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        let at = values.as_ptr().wrapping_add(values.len()).wrapping_byte_add(AHEAD_BYTES);
        // SAFETY: SSE is part of x86-64; it reads and writes nothing, and does not mind where there is no memory. Wide
        // rows take 0.77 of the time
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// A bit each.
#[derive(Default)]
pub struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    #[inline(always)]
    pub fn push(&mut self, bit: bool) {
        if self.len & 7 == 0 {
            self.bytes.push(bit as u8);
        } else if let Some(last) = self.bytes.last_mut() {
            *last |= (bit as u8) << (self.len & 7);
        }
        self.len += 1;
    }

    pub fn reserve(&mut self, more: usize) {
        self.bytes.reserve(more.div_ceil(8));
    }

    pub fn trues(len: usize) -> Bits {
        let mut bits = Bits { bytes: vec![0xff; len.div_ceil(8)], len: len + 8 };
        bits.truncate(len);
        bits
    }

    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.bytes.truncate(len.div_ceil(8));
        if let Some(last) = self.bytes.last_mut()
            && len & 7 != 0
        {
            *last &= (1 << (len & 7)) - 1;
        }
        self.len = len;
    }

    pub fn finish(&mut self) -> BooleanBuffer {
        let done = std::mem::take(self);
        BooleanBuffer::new(Buffer::from_vec(done.bytes), 0, done.len)
    }
}

/// Texts, one behind the other, and where each ends.
pub struct Texts {
    pub data: Vec<u8>,
    ends: Vec<i32>,
    /// Bytes of the last batch, which say about how many the next one has.
    last: usize,
}

impl Texts {
    pub fn new() -> Texts {
        Texts { data: Vec::new(), ends: vec![0], last: 0 }
    }

    pub fn begin(&mut self, rows: usize, bytes: usize) {
        self.ends.reserve(rows);
        self.data.reserve((self.last + self.last / 8).min(bytes));
    }

    /// Appends what `rest` begins with, 16 bytes at once where it is short: what is copied in vain is cut off again.
    #[inline(always)]
    pub fn append(&mut self, text: &[u8], rest: &[u8]) {
        match rest.first_chunk::<16>() {
            Some(chunk) if text.len() <= 16 => {
                let len = self.data.len();
                self.data.extend_from_slice(chunk);
                self.data.truncate(len + text.len());
            }
            _ => self.data.extend_from_slice(text),
        }
    }

    /// What was put behind the last text is one.
    #[inline(always)]
    pub fn end(&mut self) {
        self.ends.push(self.data.len() as i32);
        ahead(&self.ends);
        ahead(&self.data);
    }

    pub fn truncate(&mut self, len: usize) {
        self.ends.truncate(len + 1);
        self.data.truncate(last(&self.ends));
    }

    pub fn len(&self) -> usize {
        self.ends.len() - 1
    }

    fn at(&self, i: usize) -> &[u8] {
        &self.data[self.ends[i] as usize..self.ends[i + 1] as usize]
    }

    /// Whether two of those from `from` on are the same.
    pub fn twice(&self, from: usize) -> bool {
        let count = self.len() - from;
        if count <= 8 {
            return (from..self.len()).any(|i| (from..i).any(|j| self.at(i) == self.at(j)));
        }
        let mut seen = std::collections::HashSet::with_capacity(count);
        !(from..self.len()).all(|i| seen.insert(self.at(i)))
    }

    pub fn finish(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        self.last = self.data.len();
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        (offsets(ends), Buffer::from_vec(std::mem::take(&mut self.data)))
    }
}

pub fn last(ends: &[i32]) -> usize {
    ends.last().map_or(0, |end| *end as usize)
}

pub fn offsets(ends: Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(ends))
}
