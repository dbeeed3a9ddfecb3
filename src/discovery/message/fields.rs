//! The list of fields: each `tag (1) ‖ length (1 or 2) ‖ value`.
//!
//! A length below 128 is one byte; otherwise two, the first with its top bit set. Numbers are big-endian
//! without leading zeros. A field that this version does not know is skipped; of a field that stands twice and
//! should not, the first counts; a value that is longer than it must be is read as far as it is known.

use super::Malformed;

/// A list of fields being written.
#[derive(Default)]
pub(super) struct Fields(Vec<u8>);

impl Fields {
    /// Values above 32 KiB do not occur: a body is smaller.
    pub(super) fn put(&mut self, tag: u8, value: &[u8]) {
        let Ok(length) = u16::try_from(value.len()) else { return };
        self.0.push(tag);
        match u8::try_from(length) {
            Ok(short) if short < 0x80 => self.0.push(short),
            _ => self.0.extend_from_slice(&(length | 0x8000).to_be_bytes()),
        }
        self.0.extend_from_slice(value);
    }

    /// The bytes of the list.
    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn number(&mut self, tag: u8, number: u64) {
        let bytes = number.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        self.put(tag, bytes.get(zeros..).unwrap_or_default());
    }
}

/// The fields of a list, in order.
pub(super) struct Reader<'a>(Vec<(u8, &'a [u8])>);

impl<'a> Reader<'a> {
    pub(super) fn all(mut bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Vec::new();
        while let Some((tag, rest)) = bytes.split_first() {
            let (length, rest) = match *rest {
                [short, ref rest @ ..] if short < 0x80 => (usize::from(short), rest),
                [high, low, ref rest @ ..] => (usize::from(u16::from_be_bytes([high & 0x7f, low])), rest),
                _ => return Err(Malformed),
            };
            let (value, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
            fields.push((*tag, value));
            bytes = rest;
        }
        Ok(Self(fields))
    }

    pub(super) fn every(&self, tag: u8) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(t, _)| *t == tag).map(|(_, value)| *value)
    }

    pub(super) fn first(&self, tag: u8) -> Option<&'a [u8]> {
        self.every(tag).next()
    }

    pub(super) fn array<const N: usize>(&self, tag: u8) -> Result<Option<[u8; N]>, Malformed> {
        self.first(tag).map(prefix).transpose()
    }

    pub(super) fn byte(&self, tag: u8) -> Result<Option<u8>, Malformed> {
        Ok(self.array::<1>(tag)?.map(|[byte]| byte))
    }

    pub(super) fn number(&self, tag: u8) -> Result<Option<u64>, Malformed> {
        let Some(value) = self.first(tag) else { return Ok(None) };
        if value.len() > 8 {
            return Err(Malformed);
        }
        Ok(Some(value.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))))
    }

    /// Text without control characters, so that it can be shown as it is.
    pub(super) fn text(&self, tag: u8, most: usize) -> Result<Option<String>, Malformed> {
        let Some(value) = self.first(tag) else { return Ok(None) };
        let text = str::from_utf8(value).map_err(|_not_utf8| Malformed)?;
        if text.len() > most || text.chars().any(char::is_control) {
            return Err(Malformed);
        }
        Ok(Some(text.to_owned()))
    }
}

/// The first bytes of a value.
pub(super) fn prefix<const N: usize>(value: &[u8]) -> Result<[u8; N], Malformed> {
    value.first_chunk().copied().ok_or(Malformed)
}
