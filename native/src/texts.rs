//! Texts that are dates, times, decimals or bytes. None: not such a text, or a spelling that is not taken here.
use ::base64::Engine;
use ::base64::alphabet::STANDARD;
use ::base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use chrono::{Datelike, NaiveDate};

const EPOCH_DAYS: i32 = 719_163;
const DAY_MICROS: i64 = 86_400_000_000;
/// Years 1 to 9999, in days and in microseconds since 1970.
pub const DAYS: std::ops::RangeInclusive<i32> = -719_162..=2_932_896;
pub const MICROS: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;
const PLACES_MAX: i64 = 76;
/// As Python's `binascii` in its strict mode has it: padding as it must be, bits that are left over may be any.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
        .with_decode_allow_trailing_bits(true),
);

fn digits(text: &[u8], from: usize, to: usize) -> Option<u32> {
    text.get(from..to)?.iter().try_fold(0, |n, c| c.is_ascii_digit().then(|| n * 10 + (c - b'0') as u32))
}

/// Days since 1970 of `2026-12-31`.
pub fn date(text: &[u8]) -> Option<i32> {
    if text.len() != 10 || text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let year = digits(text, 0, 4)? as i32;
    let day = NaiveDate::from_ymd_opt(year, digits(text, 5, 7)?, digits(text, 8, 10)?)?;
    (year > 0).then(|| day.num_days_from_ce() - EPOCH_DAYS)
}

/// Microseconds since 1970 of `2026-12-31T23:59:59.123456Z` and its shorter spellings. `zoned`: with a zone or without,
/// else without.
pub fn time(text: &[u8], zoned: bool) -> Option<i64> {
    let mut micros = date(text.get(..10)?)? as i64 * DAY_MICROS;
    if text.len() > 10 {
        let (clock, end) = clock(text)?;
        micros += clock;
        if end < text.len() {
            micros -= if zoned { zone(&text[end..])? } else { return None };
        }
    }
    MICROS.contains(&micros).then_some(micros)
}

/// The time of day, and where it ends.
fn clock(text: &[u8]) -> Option<(i64, usize)> {
    if !matches!(text[10], b' ' | b'T') {
        return None;
    }
    let (mut end, mut parts) = (13, [digits(text, 11, 13)?, 0, 0]);
    for part in parts.iter_mut().skip(1) {
        if text.get(end) != Some(&b':') {
            break;
        }
        *part = digits(text, end + 1, end + 3)?;
        end += 3;
    }
    let [hour, minute, second] = parts;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut micros = ((hour * 60 + minute) * 60 + second) as i64 * 1_000_000;
    if end == 19 && text.get(end) == Some(&b'.') {
        let count = text[20..].iter().take_while(|c| c.is_ascii_digit()).count();
        if count == 0 || count > 6 {
            return None;
        }
        micros += digits(text, 20, 20 + count)? as i64 * 10_i64.pow(6 - count as u32);
        end = 20 + count;
    }
    Some((micros, end))
}

/// Microseconds that a zone is ahead of UTC.
fn zone(text: &[u8]) -> Option<i64> {
    let sign = match text[0] {
        b'Z' if text.len() == 1 => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hour = digits(text, 1, 3)?;
    let minute = match text.len() {
        3 => 0,
        5 => digits(text, 3, 5)?,
        6 if text[3] == b':' => digits(text, 4, 6)?,
        _ => return None,
    };
    (hour < 24 && minute < 60).then_some(sign * ((hour * 60 + minute) * 60) as i64 * 1_000_000)
}

/// A DECIMAL of so many digits as a whole number of its last places. No digit is dropped, and zeros at the end count.
pub fn decimal(text: &[u8], digits_max: u32, scale: i64) -> Option<i128> {
    let (minus, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let exponent_at = text.iter().position(|c| matches!(c, b'e' | b'E')).unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at(exponent_at);
    let (mut value, mut count, mut places, mut any, mut point) = (0_i128, 0_u32, 0_i64, false, false);
    for c in mantissa {
        match c {
            b'0'..=b'9' => {
                any = true;
                places += point as i64;
                count += (point || count > 0 || *c != b'0') as u32;
                if count > digits_max {
                    return None;
                }
                value = value * 10 + (c - b'0') as i128;
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    if !any {
        return None;
    }
    places -= exponent_of(exponent)?;
    if places > PLACES_MAX || count as i64 + (-places).max(0) > digits_max as i64 {
        return None;
    }
    let value = shifted(value, scale - places)?;
    (value < 10_i128.pow(digits_max)).then_some(if minus { -value } else { value })
}

/// Of `e+12`; zero where there is none. At most nine digits.
fn exponent_of(text: &[u8]) -> Option<i64> {
    let (minus, count) = match text {
        [] => return Some(0),
        [_, b'-', rest @ ..] => (true, rest),
        [_, b'+', rest @ ..] => (false, rest),
        [_, rest @ ..] => (false, rest),
    };
    if count.is_empty() || count.len() > 9 {
        return None;
    }
    let size = digits(count, 0, count.len())? as i64;
    Some(if minus { -size } else { size })
}

/// `value` times ten to the power of `by`, where that is a whole number of at most 38 digits.
fn shifted(value: i128, by: i64) -> Option<i128> {
    if value == 0 {
        return Some(0);
    }
    let power = 10_i128.checked_pow(u32::try_from(by.abs()).ok()?)?;
    if by >= 0 { value.checked_mul(power) } else { (value % power == 0).then(|| value / power) }
}

/// Appends the bytes of base64.
pub fn base64(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    BASE64.decode_vec(text, out).ok()
}
