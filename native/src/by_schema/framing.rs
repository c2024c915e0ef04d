//! What stands before a datum, or in a header, and says by which schema it was written.
//! Sources: `participant/records/by_schema/framing.py`, `participant/records/protobuf/framing.py`, and
//! `participant/records/headers.py` for headers.
use crate::by_schema::records::Format;
use crate::parser::{Read, Refused};

const BY_ID: u8 = 0;
const BY_GUID: u8 = 1;
const MARK: [u8; 2] = [0xc3, 0x01];
const MARKED_BYTES: usize = 10;

/// Numbers in the place of a message, and bytes of each.
const PLACE_MAX: i64 = 64;
const NUMBER_BYTES_MAX: usize = 5;

#[derive(Clone, Copy)]
pub enum Framing {
    Confluent,
    /// The same, and behind it which message of its file it is, which is part of the key.
    ConfluentMessage,
    SingleObject,
    Bare,
}

impl Framing {
    /// By the name that it has in the configuration.
    pub fn named(name: &str, format: Format) -> Option<Framing> {
        Some(match (name, format) {
            ("confluent", Format::Avro) => Framing::Confluent,
            ("confluent", Format::Protobuf) => Framing::ConfluentMessage,
            ("single_object", Format::Avro) => Framing::SingleObject,
            ("none", _) => Framing::Bare,
            _ => return None,
        })
    }

    /// Of a value, and of the header that names its schema: the schema's key, as it is spelled there, and where the
    /// datum begins.
    #[inline(always)]
    pub fn split<'a>(self, value: &'a [u8], header: Option<&'a [u8]>) -> Read<(&'a [u8], usize)> {
        match (self, header) {
            (Framing::Confluent, None) => {
                let end = identity(value)?;
                Ok((&value[..end], end))
            }
            (Framing::Confluent, Some(header)) => {
                if identity(header)? == header.len() {
                    Ok((header, 0))
                } else {
                    Err(Refused)
                }
            }
            (Framing::ConfluentMessage, None) => {
                let end = place(value, identity(value)?)?;
                Ok((&value[..end], end))
            }
            (Framing::ConfluentMessage, Some(header)) => {
                if place(header, identity(header)?)? == header.len() {
                    Ok((header, 0))
                } else {
                    Err(Refused)
                }
            }
            (Framing::SingleObject, _) => {
                if value.len() < MARKED_BYTES || value[..2] != MARK {
                    return Err(Refused);
                }
                Ok((&value[2..MARKED_BYTES], MARKED_BYTES))
            }
            (Framing::Bare, _) => Ok((&value[..0], 0)),
        }
    }
}

/// How long the id or GUID is that `data` begins with, with the byte that says which.
#[inline(always)]
fn identity(data: &[u8]) -> Read<usize> {
    let end = match data.first() {
        Some(&BY_ID) => 5,
        Some(&BY_GUID) => 17,
        _ => return Err(Refused),
    };
    if data.len() < end { Err(Refused) } else { Ok(end) }
}

/// Where the place of a message ends that begins at `at`.
#[inline(always)]
fn place(data: &[u8], at: usize) -> Read<usize> {
    let (count, mut at) = number(data, at)?;
    if !(0..=PLACE_MAX).contains(&count) {
        return Err(Refused);
    }
    for _ in 0..count {
        let (inside, end) = number(data, at)?;
        if inside < 0 {
            return Err(Refused);
        }
        at = end;
    }
    Ok(at)
}

fn number(data: &[u8], at: usize) -> Read<(i64, usize)> {
    let mut number: i64 = 0;
    for (i, byte) in data.get(at..).ok_or(Refused)?.iter().take(NUMBER_BYTES_MAX).enumerate() {
        number |= ((byte & 0x7f) as i64) << (7 * i);
        if *byte < 0x80 {
            return Ok(((number >> 1) ^ -(number & 1), at + i + 1));
        }
    }
    Err(Refused)
}

/// The value of the first header of this name, None where there is none, or it is null.
pub fn header<'a>(packed: &'a [u8], name: &[u8]) -> Read<Option<&'a [u8]>> {
    let mut rest = packed;
    while !rest.is_empty() {
        let found = text(&mut rest)?;
        let value = text(&mut rest)?;
        if found == Some(name) {
            return Ok(value);
        }
    }
    Ok(None)
}

/// A length and so many bytes; None where it is below zero.
fn text<'a>(rest: &mut &'a [u8]) -> Read<Option<&'a [u8]>> {
    let (length, behind) = rest.split_first_chunk::<4>().ok_or(Refused)?;
    let Ok(length) = usize::try_from(i32::from_le_bytes(*length)) else {
        *rest = behind;
        return Ok(None);
    };
    let found = behind.get(..length).ok_or(Refused)?;
    *rest = &behind[length..];
    Ok(Some(found))
}
