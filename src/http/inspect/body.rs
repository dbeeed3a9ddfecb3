//! The body of a request: where it ends, and whether its chunks are exact (RFC 9112 section 7.1).

use super::line::field;
use super::{Fault, Limits};

/// Bytes of chunk extensions in one body: nobody needs any.
const EXTENSIONS: usize = 16 * 1024;
/// Bytes of a trailer section.
const TRAILERS: usize = 16 * 1024;
/// Fields that say how a message is framed or routed, and so come too late in a trailer section
/// (RFC 9110 section 6.5.1).
const NOT_IN_TRAILERS: [&str; 6] =
    ["transfer-encoding", "content-length", "host", "trailer", "connection", "authorization"];

/// A body that is being read.
#[derive(Debug)]
pub(super) enum Body {
    /// So many bytes are to come.
    Length(u64),
    /// Chunks are to come.
    Chunked(Chunks),
}

/// Where in the chunks we are.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    place: Place,
    /// Of the chunk that is being read.
    size: u64,
    extensions: usize,
    fields: usize,
    /// The line of the trailer section that is being read; and how long they were together.
    line: Vec<u8>,
    trailers: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the first digit of a size.
    #[default]
    Start,
    /// Behind at least one.
    Digits,
    /// In whitespace that only an extension may follow.
    Space,
    /// In an extension.
    Extension,
    /// Between the CR and the LF of a size.
    SizeEnd,
    /// In the bytes of a chunk.
    Data,
    /// Behind them.
    DataEnd,
    /// Between the CR and the LF behind them.
    DataLf,
    /// In the trailer section.
    Trailer,
    /// Behind a CR there.
    TrailerLf,
    /// Behind it all.
    Over,
}

impl Body {
    /// Takes what of these bytes belongs to the body. Gives how many those are and whether the body has ended.
    pub(super) fn take(&mut self, bytes: &[u8], limits: &Limits) -> Result<(usize, bool), Fault> {
        match self {
            Self::Length(left) => {
                let taken = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left = left.saturating_sub(taken as u64);
                Ok((taken, *left == 0))
            }
            Self::Chunked(chunks) => chunks.take(bytes, limits),
        }
    }
}

impl Chunks {
    fn take(&mut self, bytes: &[u8], limits: &Limits) -> Result<(usize, bool), Fault> {
        let mut taken = 0;
        while self.place != Place::Over {
            let rest = bytes.get(taken..).unwrap_or_default();
            if self.place == Place::Data {
                let skipped = usize::try_from(self.size).map_or(rest.len(), |size| size.min(rest.len()));
                self.size = self.size.saturating_sub(skipped as u64);
                taken += skipped;
                if self.size > 0 {
                    break;
                }
                self.place = Place::DataEnd;
                continue;
            }
            let Some(byte) = rest.first() else { break };
            self.place = self.step(*byte, limits)?;
            taken += 1;
        }
        Ok((taken, self.place == Place::Over))
    }

    fn step(&mut self, byte: u8, limits: &Limits) -> Result<Place, Fault> {
        let next = match (self.place, byte) {
            (Place::Start | Place::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.add_digit(byte)?;
                Place::Digits
            }
            (Place::Digits | Place::Extension, b'\r') => Place::SizeEnd,
            (Place::Digits | Place::Space, b' ' | b'\t') => self.extended(Place::Space)?,
            (Place::Digits | Place::Space, b';') => self.extended(Place::Extension)?,
            (Place::Extension, b'\t' | b' '..=b'~' | 0x80..) => self.extended(Place::Extension)?,
            (Place::SizeEnd, b'\n') if self.size == 0 => Place::Trailer,
            (Place::SizeEnd, b'\n') => Place::Data,
            (Place::DataEnd, b'\r') => Place::DataLf,
            (Place::DataLf, b'\n') => Place::Start,
            (Place::Trailer, b'\r') => Place::TrailerLf,
            (Place::Trailer, b'\n') => return Err(Fault::Trailer),
            (Place::Trailer, byte) => self.trailing(byte)?,
            (Place::TrailerLf, b'\n') => self.trailer(limits)?,
            (Place::TrailerLf, _) => return Err(Fault::Trailer),
            _ => return Err(Fault::Chunk),
        };
        Ok(next)
    }

    fn add_digit(&mut self, byte: u8) -> Result<(), Fault> {
        let digit = char::from(byte).to_digit(16).ok_or(Fault::Chunk)?;
        let size = self.size.checked_mul(16).ok_or(Fault::Chunk)?;
        self.size = size | u64::from(digit);
        Ok(())
    }

    fn extended(&mut self, place: Place) -> Result<Place, Fault> {
        self.extensions += 1;
        if self.extensions > EXTENSIONS { Err(Fault::Chunk) } else { Ok(place) }
    }

    fn trailing(&mut self, byte: u8) -> Result<Place, Fault> {
        self.trailers += 1;
        if self.trailers > TRAILERS {
            return Err(Fault::Trailer);
        }
        self.line.push(byte);
        Ok(Place::Trailer)
    }

    /// A line of the trailer section is complete; an empty one ends it.
    fn trailer(&mut self, limits: &Limits) -> Result<Place, Fault> {
        if self.line.is_empty() {
            return Ok(Place::Over);
        }
        let (name, _) = field(&self.line).map_err(|_why| Fault::Trailer)?;
        self.fields += 1;
        let is_forbidden = NOT_IN_TRAILERS.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        if is_forbidden || self.fields > limits.fields {
            return Err(Fault::Trailer);
        }
        self.line.clear();
        Ok(Place::Trailer)
    }
}
