//! JSON values to columns in one pass: the schema says what comes next, and the text is looked at once.
//!
//! It takes what the strict decoder takes (`participant/records/json/decoder.py` says what that is) or less, and never
//! more: what is refused here that decoder looks at again, and its word counts. So a rare spelling may be refused here.
use crate::budget::Budget;
use crate::buffers::{Texts, ahead};
use crate::columns::{Column, Kind, Map, Object};
use crate::strings::{escaped, run};
use crate::texts;

/// The value is not taken here. Why, in words, is the strict decoder's to say.
#[derive(Debug)]
pub struct Refused;
pub type Read<T> = Result<T, Refused>;

/// What no field of the schema holds may be nested so deep, and is refused here beyond.
const DEPTH_MAX: u32 = 64;

/// `WIDE`: whether texts are looked at 16 bytes at a time, where the processor does. `REST`: whether what no field is
/// named for is kept.
pub struct Parser<'a, const WIDE: bool, const REST: bool> {
    whole: &'a [u8],
    /// To the end of the value.
    pub(crate) text: &'a [u8],
    pub(crate) i: usize,
    scratch: Vec<u8>,
    /// Members of the row's object that are no fields, as they are spelled, and with those of objects in it; between
    /// braces they are an object.
    pub rest: Vec<u8>,
    /// Not within an array or a map.
    keeps: bool,
    /// Where the name ends that was read last.
    name_end: usize,
    pub budget: Budget,
}

impl<'a, const WIDE: bool, const REST: bool> Parser<'a, WIDE, REST> {
    /// `whole`: UTF-8, or each value is to be looked at beforehand; a newline behind every value.
    pub fn new(whole: &'a [u8]) -> Self {
        let (scratch, rest, budget) = (Vec::new(), Vec::new(), Budget::default());
        Parser { whole, text: &whole[..0], i: 0, scratch, rest, keeps: true, name_end: 0, budget }
    }

    /// The value from `from` to `to` as one row. Where it is refused the columns hold a part of it.
    pub fn row(&mut self, from: usize, to: usize, object: &mut Object) -> Read<()> {
        self.text = &self.whole[..to];
        self.i = from;
        self.budget.begin(to - from);
        if REST {
            self.rest.clear();
            self.keeps = true;
        }
        self.blank();
        self.object(object)?;
        self.blank();
        if self.i == to { Ok(()) } else { Err(Refused) }
    }

    #[inline(always)]
    pub(crate) fn peek(&self) -> u8 {
        self.text.get(self.i).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn blank(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.i += 1;
        }
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, c: u8) -> bool {
        let there = self.peek() == c;
        self.i += there as usize;
        there
    }

    #[inline(always)]
    fn expect(&mut self, c: u8) -> Read<()> {
        if self.take(c) { Ok(()) } else { Err(Refused) }
    }

    #[inline(always)]
    pub(crate) fn word(&mut self, word: &[u8]) -> bool {
        let there = self.text.get(self.i..).is_some_and(|rest| rest.starts_with(word));
        if there {
            self.i += word.len();
        }
        there
    }

    /// Behind a member or an item: true where another one follows.
    #[inline(always)]
    fn goes_on(&mut self, close: u8) -> Read<bool> {
        self.blank();
        if self.take(b',') {
            self.blank();
            return Ok(true);
        }
        self.expect(close).map(|()| false)
    }

    // --- objects ------------------------------------------------------------------------------------

    fn object(&mut self, o: &mut Object) -> Read<()> {
        self.expect(b'{')?;
        o.turn += 1;
        let (turn, count) = (o.turn, o.columns.len());
        let (mut last, mut found) = (count, 0);
        self.blank();
        if !self.take(b'}') {
            let rest_from = self.rest.len();
            loop {
                let name_from = self.i;
                let guess = o.after[last];
                let at = if guess < count && self.is_next(&o.columns[guess]) { Some(guess) } else { self.name(o)? };
                self.blank();
                match at {
                    Some(field) => {
                        if o.seen[field] == turn {
                            return Err(Refused);
                        }
                        o.seen[field] = turn;
                        o.after[last] = field;
                        last = field;
                        found += 1;
                        if REST && self.keeps && matches!(o.columns[field].kind, Kind::Struct(_)) {
                            self.within(&mut o.columns[field], name_from, rest_from)?;
                        } else {
                            self.value(&mut o.columns[field])?;
                        }
                    }
                    None if REST && self.keeps => {
                        self.member(name_from, rest_from);
                        let value_from = self.i;
                        self.skip(0)?;
                        self.rest.extend_from_slice(&self.text[value_from..self.i]);
                    }
                    None => self.skip(0)?,
                }
                if !self.goes_on(b'}')? {
                    break;
                }
            }
        }
        if found < count && !o.fill(turn) { Err(Refused) } else { Ok(()) }
    }

    /// Whether the column's name and a colon come next, as they mostly are: one comparison of 16 bytes.
    #[inline(always)]
    fn is_next(&mut self, c: &Column) -> bool {
        let Some(rest) = self.whole.get(self.i..) else { return false };
        let there = match rest.first_chunk::<16>() {
            Some(head) => {
                u128::from_le_bytes(*head) & c.mask == c.head
                    && (c.literal.len() <= 16 || rest[16..].starts_with(&c.literal[16..]))
            }
            None => !c.literal.is_empty() && rest.starts_with(&c.literal),
        };
        if there {
            self.i += c.literal.len();
            if REST {
                self.name_end = self.i - 1;
            }
        }
        there
    }

    /// The name that was read last, and its colon, behind what is kept of the same object.
    fn member(&mut self, name_from: usize, rest_from: usize) {
        if self.rest.len() > rest_from {
            self.rest.push(b',');
        }
        self.rest.extend_from_slice(&self.text[name_from..self.name_end]);
        self.rest.push(b':');
    }

    /// A field that is an object: what of it is kept stands in an object of its own.
    fn within(&mut self, c: &mut Column, name_from: usize, rest_from: usize) -> Read<()> {
        let before = self.rest.len();
        self.member(name_from, rest_from);
        self.rest.push(b'{');
        let begun = self.rest.len();
        self.value(c)?;
        if self.rest.len() == begun {
            self.rest.truncate(before);
        } else {
            self.rest.push(b'}');
        }
        Ok(())
    }

    /// Another name than was expected, and its colon: which field it is.
    fn name(&mut self, o: &Object) -> Read<Option<usize>> {
        let found = self.quoted(|name| Ok(o.names.get(name).copied()))?;
        self.name_end = self.i;
        self.blank();
        self.expect(b':')?;
        Ok(found)
    }

    // --- values -------------------------------------------------------------------------------------

    #[inline(always)]
    fn value(&mut self, c: &mut Column) -> Read<()> {
        let first = self.peek();
        if first == b'n' {
            if !c.nullable || !self.word(b"null") {
                return Err(Refused);
            }
            c.null();
            return Ok(());
        }
        match &mut c.kind {
            Kind::Text(texts) => self.string(&mut texts.data).map(|()| texts.end())?,
            Kind::Long(v) => {
                v.push(self.whole_number()?);
                ahead(v);
            }
            Kind::Double(v) => {
                v.push(self.number()?);
                ahead(v);
            }
            Kind::Bool(bits) => match first {
                b't' if self.word(b"true") => bits.push(true),
                b'f' if self.word(b"false") => bits.push(false),
                _ => return Err(Refused),
            },
            other => self.rarer(other)?,
        }
        c.mark();
        Ok(())
    }

    #[inline(never)]
    fn rarer(&mut self, kind: &mut Kind) -> Read<()> {
        match kind {
            Kind::Int(v) => v.push(i32::try_from(self.whole_number()?).map_err(|_| Refused)?),
            Kind::Float(v) => {
                let wide = self.number()?;
                let done = wide as f32 + 0.0;
                if done.is_infinite() && !wide.is_infinite() {
                    return Err(Refused);
                }
                v.push(done);
            }
            Kind::Struct(o) => self.object(o)?,
            Kind::List(ends, _, item) => {
                let kept = std::mem::replace(&mut self.keeps, false);
                self.array(item)?;
                self.keeps = kept;
                ends.push(item.len as i32);
            }
            Kind::Map(map) => {
                let kept = std::mem::replace(&mut self.keeps, false);
                self.map(map)?;
                self.keeps = kept;
            }
            Kind::Date(v) => v.push(self.quoted(|text| texts::date(text).ok_or(Refused))?),
            Kind::Time(v, zone) => {
                let zoned = zone.is_some();
                v.push(self.quoted(|text| texts::time(text, zoned).ok_or(Refused))?);
            }
            Kind::Decimal(v, digits, scale) => v.push(self.decimal(*digits as u32, *scale as i64)?),
            Kind::Bytes(bytes) => self.bytes(bytes)?,
            Kind::Text(_) | Kind::Long(_) | Kind::Double(_) | Kind::Bool(_) => return Err(Refused),
        }
        Ok(())
    }

    fn array(&mut self, item: &mut Column) -> Read<()> {
        self.expect(b'[')?;
        self.blank();
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.budget.spend(item.places)?;
            self.value(item)?;
            if !self.goes_on(b']')? {
                return Ok(());
            }
        }
    }

    fn map(&mut self, map: &mut Map) -> Read<()> {
        let before = map.keys.len();
        self.expect(b'{')?;
        self.blank();
        if !self.take(b'}') {
            loop {
                self.budget.spend(1 + map.items.places)?;
                self.string(&mut map.keys.data)?;
                map.keys.end();
                self.blank();
                self.expect(b':')?;
                self.blank();
                self.value(&mut map.items)?;
                if !self.goes_on(b'}')? {
                    break;
                }
            }
        }
        if map.keys.twice(before) {
            return Err(Refused);
        }
        map.ends.push(map.keys.len() as i32);
        Ok(())
    }

    fn decimal(&mut self, digits: u32, scale: i64) -> Read<i128> {
        if self.peek() == b'"' {
            return self.quoted(|text| texts::decimal(text, digits, scale).ok_or(Refused));
        }
        let from = self.i;
        self.skip_number()?;
        texts::decimal(&self.text[from..self.i], digits, scale).ok_or(Refused)
    }

    fn bytes(&mut self, bytes: &mut Texts) -> Read<()> {
        let out = &mut bytes.data;
        self.quoted(|text| texts::base64(text, out).ok_or(Refused))?;
        bytes.end();
        Ok(())
    }

    // --- texts --------------------------------------------------------------------------------------

    /// Appends what the text says.
    #[inline(always)]
    fn string(&mut self, out: &mut Vec<u8>) -> Read<()> {
        self.expect(b'"')?;
        loop {
            // A newline stands behind the value and in no text, so that nothing behind it is taken
            let rest = self.whole.get(self.i..).ok_or(Refused)?;
            self.i += run::<WIDE>(rest, out);
            match self.peek() {
                b'"' => {
                    self.i += 1;
                    return Ok(());
                }
                b'\\' => self.i += escaped(&self.text[self.i + 1..], out).ok_or(Refused)? + 1,
                _ => return Err(Refused),
            }
        }
    }

    /// What is read of a text that no column takes as it is.
    fn quoted<T>(&mut self, read: impl FnOnce(&[u8]) -> Read<T>) -> Read<T> {
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        let done = self.string(&mut text).and_then(|()| read(&text));
        self.scratch = text;
        done
    }

    // --- what the schema does not name --------------------------------------------------------------

    #[inline(never)]
    fn skip(&mut self, depth: u32) -> Read<()> {
        if depth > DEPTH_MAX {
            return Err(Refused);
        }
        match self.peek() {
            b'"' => self.quoted(|_| Ok(())),
            b'{' => {
                self.i += 1;
                self.blank();
                if self.take(b'}') {
                    return Ok(());
                }
                loop {
                    self.quoted(|_| Ok(()))?;
                    self.blank();
                    self.expect(b':')?;
                    self.blank();
                    self.skip(depth + 1)?;
                    if !self.goes_on(b'}')? {
                        return Ok(());
                    }
                }
            }
            b'[' => {
                self.i += 1;
                self.blank();
                if self.take(b']') {
                    return Ok(());
                }
                loop {
                    self.skip(depth + 1)?;
                    if !self.goes_on(b']')? {
                        return Ok(());
                    }
                }
            }
            b't' if self.word(b"true") => Ok(()),
            b'f' if self.word(b"false") => Ok(()),
            b'n' if self.word(b"null") => Ok(()),
            _ => self.skip_number(),
        }
    }
}
