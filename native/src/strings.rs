//! What stands between two quotes.

/// Appends what comes before the first quote, backslash or control character, and answers its length.
///
/// It is found and copied 16 bytes at a time: what is copied in vain is cut off again, which costs less than asking.
#[inline(always)]
pub fn run<const WIDE: bool>(text: &[u8], out: &mut Vec<u8>) -> usize {
    let mut i = 0;
    if WIDE {
        while let Some(chunk) = text.get(i..).and_then(|rest| rest.first_chunk::<16>()) {
            let found = stops(chunk);
            #[cfg(fuzzing)]
            assert_eq!(found, stops_plainly(chunk));
            let count = found.trailing_zeros().min(16) as usize;
            let len = out.len();
            out.extend_from_slice(chunk);
            out.truncate(len + count);
            i += count;
            if found != 0 {
                return i;
            }
        }
    }
    let rest = &text[i..];
    let count = rest.iter().position(|c| matches!(c, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
    out.extend_from_slice(&rest[..count]);
    i + count
}

/// A bit for each byte at which a run ends.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn stops(chunk: &[u8; 16]) -> u32 {
    use std::arch::x86_64::*;
    // SAFETY: SSE2 is part of x86-64; the 16 bytes that are loaded are the chunk. Rows of texts of 100 bytes take 0.7
    // of the time that they take a byte at a time.
    unsafe {
        let have = _mm_loadu_si128(chunk.as_ptr().cast());
        let quote = _mm_cmpeq_epi8(have, _mm_set1_epi8(b'"' as i8));
        let slash = _mm_cmpeq_epi8(have, _mm_set1_epi8(b'\\' as i8));
        let control = _mm_cmpeq_epi8(_mm_min_epu8(have, _mm_set1_epi8(0x1f)), have);
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), control)) as u32
    }
}

#[cfg(not(target_arch = "x86_64"))]
use stops_plainly as stops;

/// The same where there is no SSE2; fuzzing holds both against each other.
#[cfg(any(fuzzing, not(target_arch = "x86_64")))]
#[inline(always)]
fn stops_plainly(chunk: &[u8; 16]) -> u32 {
    chunk.iter().rev().fold(0, |bits, c| bits << 1 | matches!(c, b'"' | b'\\' | 0..=0x1f) as u32)
}

/// Appends what an escape says. `text` begins behind its backslash. Answers how many bytes it took; None where it is
/// no escape, or half a surrogate pair.
#[inline(never)]
pub fn escaped(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    out.push(match text.first()? {
        c @ (b'"' | b'\\' | b'/') => *c,
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        b'u' => {
            let high = hex(text.get(1..5)?)?;
            let (code, took) = match high {
                0xd800..=0xdbff => {
                    let low = hex(text.get(5..11)?.strip_prefix(b"\\u")?)?;
                    if !(0xdc00..0xe000).contains(&low) {
                        return None;
                    }
                    (0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), 11)
                }
                _ => (high, 5),
            };
            let mut bytes = [0; 4];
            out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut bytes).as_bytes());
            return Some(took);
        }
        _ => return None,
    });
    Some(1)
}

fn hex(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0, |n, c| Some(n << 4 | (*c as char).to_digit(16)?))
}
