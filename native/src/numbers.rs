//! Numbers as JSON spells them.
use crate::parser::{Parser, Read, Refused};

/// Arrow's reader takes no larger exponent anywhere.
const EXPONENT_MAX: u32 = 308;
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
/// What is no number and yet a double: bare, or as a string (`NOT_FINITE` in participant/records/json/values.py).
const WORDS: [(&[u8], f64); 7] = [
    (b"NaN", f64::NAN),
    (b"\"NaN\"", f64::NAN),
    (b"\"Infinity\"", f64::INFINITY),
    (b"\"+Infinity\"", f64::INFINITY),
    (b"\"+INF\"", f64::INFINITY),
    (b"\"-Infinity\"", f64::NEG_INFINITY),
    (b"\"-INF\"", f64::NEG_INFINITY),
];

impl<const WIDE: bool, const REST: bool> Parser<'_, WIDE, REST> {
    /// A whole number that is spelled as one: `1.0` and `1e3` are not.
    #[inline(always)]
    pub(crate) fn whole_number(&mut self) -> Read<i64> {
        let minus = self.take(b'-');
        let from = self.i;
        let mut n: u64 = 0;
        while self.i <= from + 8
            && let Some(eight) = self.text.get(self.i..).and_then(|rest| rest.first_chunk::<8>())
            && let Some(value) = eight_digits(u64::from_le_bytes(*eight))
        {
            n = n * 100_000_000 + value;
            self.i += 8;
        }
        loop {
            let digit = self.peek().wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            if self.i - from >= 19 {
                return Err(Refused);
            }
            n = n * 10 + digit as u64;
            self.i += 1;
        }
        let count = self.i - from;
        if count == 0 || (count > 1 && self.text[from] == b'0') || matches!(self.peek(), b'.' | b'e' | b'E') {
            return Err(Refused);
        }
        if minus && n == 1 << 63 {
            return Ok(i64::MIN);
        }
        let n = i64::try_from(n).map_err(|_| Refused)?;
        Ok(if minus { -n } else { n })
    }

    /// The nearest double; a negative zero is zero.
    #[inline(always)]
    pub(crate) fn number(&mut self) -> Read<f64> {
        let from = self.i;
        let minus = self.take(b'-');
        let whole = self.i;
        let mut m: u64 = 0;
        self.digits(&mut m);
        let mut count = self.i - whole;
        if count == 0 {
            return self.not_finite(minus);
        }
        if count > 1 && self.text[whole] == b'0' {
            return Err(Refused);
        }
        let mut places = 0;
        if self.take(b'.') {
            let point = self.i;
            self.digits(&mut m);
            places = self.i - point;
            if places == 0 {
                return Err(Refused);
            }
            count += places;
        }
        let plain = !self.exponent()?;
        // Exact: both are doubles, so that one division rounds once
        if plain && count <= 19 && m < 1 << 53 && places < POWERS.len() {
            let value = m as f64 / POWERS[places];
            return Ok(if minus { 0.0 - value } else { value });
        }
        let text = std::str::from_utf8(&self.text[from..self.i]).map_err(|_| Refused)?;
        let value: f64 = text.parse().map_err(|_| Refused)?;
        if value.is_finite() { Ok(value + 0.0) } else { Err(Refused) }
    }

    #[inline(always)]
    fn digits(&mut self, m: &mut u64) {
        loop {
            let digit = self.peek().wrapping_sub(b'0');
            if digit > 9 {
                return;
            }
            *m = m.wrapping_mul(10).wrapping_add(digit as u64);
            self.i += 1;
        }
    }

    /// Whether there is one.
    #[inline(always)]
    fn exponent(&mut self) -> Read<bool> {
        if !matches!(self.peek(), b'e' | b'E') {
            return Ok(false);
        }
        self.i += 1;
        let minus = self.peek() == b'-';
        if matches!(self.peek(), b'+' | b'-') {
            self.i += 1;
        }
        let from = self.i;
        let mut size: u32 = 0;
        while self.peek().is_ascii_digit() {
            size = size.saturating_mul(10).saturating_add((self.peek() - b'0') as u32);
            self.i += 1;
        }
        if self.i == from || (!minus && size > EXPONENT_MAX) { Err(Refused) } else { Ok(true) }
    }

    #[cold]
    fn not_finite(&mut self, minus: bool) -> Read<f64> {
        if self.word(b"Infinity") {
            return Ok(if minus { f64::NEG_INFINITY } else { f64::INFINITY });
        }
        if minus {
            return Err(Refused);
        }
        let found = WORDS.iter().find(|(word, _)| self.word(word));
        found.map(|(_, value)| *value).ok_or(Refused)
    }

    pub(crate) fn skip_number(&mut self) -> Read<()> {
        let minus = self.take(b'-');
        let from = self.i;
        self.digits(&mut 0);
        if self.i == from {
            return self.not_finite(minus).map(|_| ());
        }
        if self.i - from > 1 && self.text[from] == b'0' {
            return Err(Refused);
        }
        if self.take(b'.') {
            let point = self.i;
            self.digits(&mut 0);
            if self.i == point {
                return Err(Refused);
            }
        }
        self.exponent().map(|_| ())
    }
}

/// Eight digits at once, the first one in the lowest byte; None where they are not all digits.
#[inline(always)]
fn eight_digits(w: u64) -> Option<u64> {
    let high = 0xf0f0_f0f0_f0f0_f0f0;
    if (w & high) | ((w.wrapping_add(0x0606_0606_0606_0606) & high) >> 4) != 0x3333_3333_3333_3333 {
        return None;
    }
    let w = (w & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2561) >> 8;
    let w = (w & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    Some((w & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32)
}
