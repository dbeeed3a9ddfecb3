//! Joining what is held of a thing from its beginning on.
//!
//! What is whole becomes a blob that answers everything, neighbours included; what is not becomes a partial, with
//! which the next download of the whole goes on. A beginning is only written anew when it has doubled, so a
//! thing that comes in many small parts is copied a few times and not once for each of them.

use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use super::{Case, Engine, Note, head_of_whole, partial_key};
use crate::cache::{Cache, Part, Provenance};
use crate::digest::Digest;
use crate::fetch::neighbours::version_key;
use crate::index::ResourceRecord;
use crate::policy::Answer;
use crate::store::{Blob, Ingest, PartialRecord};

/// Bytes copied at a time.
const STEP: usize = 1024 * 1024;

/// A beginning, or the whole, that can be made of what is held.
pub(super) struct Join {
    note: Note,
    size: u64,
    shareable: bool,
    /// An earlier partial that it begins with.
    earlier: Option<PartialRecord>,
    /// The parts behind that, in their order, each with what of it is taken.
    pieces: Vec<(Arc<Part>, Range<u64>)>,
    length: u64,
}

impl Join {
    /// What the newest part makes possible, if it is worth the copying.
    pub(super) fn around(engine: &Engine, case: &Case, newest: &Part, shareable: bool) -> Option<Self> {
        if case.judge.stated.is_some() {
            // what names the thing is in another algorithm, which only reading from the beginning on reckons
            return None;
        }
        let answer = head_of_whole(&newest.answer);
        let cache = &engine.0.cache;
        let earlier = cache.partial(&partial_key(case.flight_key()));
        let earlier = earlier.filter(|record| {
            Note::from_text(&record.note).is_some_and(|note| {
                note.variance == newest.variance
                    && note.total.is_none_or(|total| total == newest.size)
                    && is_same(&note.answer, &newest.answer)
            })
        });
        let from_partial = earlier.as_ref().map_or(0, |record| record.offset);
        let pieces = chain(&cache.parts(&case.url), newest, from_partial);
        let length = pieces.last().map_or(from_partial, |(_, range)| range.end);
        let is_worth_it = length >= newest.size || length / 2 >= from_partial.max(1);
        let note = Note { answer, variance: newest.variance.clone(), total: Some(newest.size) };
        (is_worth_it && !pieces.is_empty()).then_some(Self {
            note,
            size: newest.size,
            shareable,
            earlier,
            pieces,
            length,
        })
    }

    pub(super) fn is_whole(&self) -> bool {
        self.length >= self.size
    }

    /// Copies, and keeps what comes of it.
    pub(super) async fn run(self, engine: &Engine, case: Case) {
        let mut sources = Vec::new();
        for (part, range) in &self.pieces {
            let Some(blob) = engine.0.cache.open_proven(&part.digest).await else { return };
            let from = range.start.saturating_sub(part.range.start);
            sources.push((blob, from..range.end.saturating_sub(part.range.start)));
        }
        let engine = engine.clone();
        let joined = tokio::task::spawn_blocking(move || self.write(&engine, &case, &sources));
        match joined.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "parts are not joined"),
            Err(_) => tracing::error!("the thread that joins parts ended early"),
        }
    }

    fn write(self, engine: &Engine, case: &Case, sources: &[(Blob, Range<u64>)]) -> std::io::Result<()> {
        let (cache, key) = (&engine.0.cache, partial_key(case.flight_key()));
        let (mut ingest, reservation) = self.begin(cache)?;
        for (blob, range) in sources {
            copy(blob, range.clone(), &mut ingest)?;
        }
        if !self.is_whole() {
            cache.keep(ingest, &key, &self.note.to_text());
        } else {
            let digest = ingest.digest();
            // what the URL itself names must be that; else nothing was joined that belongs together
            if case.judge.binding && case.judge.digest.is_some_and(|named| named != digest) {
                return Err(std::io::Error::other("the parts make another thing than the one named"));
            }
            cache
                .commit(ingest, Provenance { first_hand: true, guarded: case.guarded && case.rule.share })
                .map_err(std::io::Error::other)?;
            cache.put_resource(self.record(case, digest));
            let parts: Vec<_> = self.pieces.iter().map(|(part, _)| Arc::clone(part)).collect();
            engine.drop_parts(&parts);
        }
        drop(reservation);
        Ok(())
    }

    fn begin(&self, cache: &Cache) -> std::io::Result<(Ingest, crate::cache::Reservation)> {
        let Some(earlier) = &self.earlier else {
            return cache.begin(Some(self.length)).map_err(std::io::Error::other);
        };
        let resumed = cache.resume(earlier, Some(self.length), None).map_err(std::io::Error::other)?;
        // somebody went on with it meanwhile
        resumed.ok_or_else(|| std::io::ErrorKind::ResourceBusy.into())
    }

    fn record(&self, case: &Case, digest: Digest) -> ResourceRecord {
        let Note { answer, variance, .. } = self.note.clone();
        ResourceRecord {
            resource_key: version_key(&case.url, &variance, &answer.head),
            url_key: case.url,
            shown_url: case.want.target.shown(),
            variance,
            digest: Some(digest),
            size: self.size,
            first_hand: true,
            shareable: self.shareable,
            answer,
        }
    }
}

/// The parts that follow on `from` without a gap, under the newest one's version. Without a strong tag no part
/// follows on another: then only one from the very beginning counts.
fn chain(parts: &[Arc<Part>], newest: &Part, from: u64) -> Vec<(Arc<Part>, Range<u64>)> {
    let fits = |part: &&Arc<Part>| {
        part.is_exact()
            && part.size == newest.size
            && part.variance == newest.variance
            && (***part == *newest || is_same(&part.answer, &newest.answer))
    };
    let tagged = newest.answer.head.strong_etag().is_some();
    let mut sorted: Vec<&Arc<Part>> = parts.iter().filter(fits).collect();
    sorted.sort_by_key(|part| (part.range.start, std::cmp::Reverse(part.range.end)));
    let (mut pieces, mut at) = (Vec::new(), from);
    for part in sorted {
        if part.range.start > at || (!tagged && !pieces.is_empty()) {
            break;
        }
        if part.range.end > at {
            pieces.push((Arc::clone(part), at..part.range.end));
            at = part.range.end;
        }
    }
    pieces
}

/// Whether two answers are of one version: by the same strong tag, and nothing less.
fn is_same(one: &Answer, other: &Answer) -> bool {
    one.head.strong_etag().is_some_and(|tag| other.head.strong_etag() == Some(tag))
}

fn copy(blob: &Blob, range: Range<u64>, into: &mut Ingest) -> std::io::Result<()> {
    let mut buffer = vec![0; STEP];
    let mut at = range.start;
    while at < range.end {
        let most = usize::try_from(range.end - at).unwrap_or(STEP).min(STEP);
        let read = blob.file().read_at(buffer.get_mut(..most).unwrap_or_default(), at)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        };
        into.append(bytes).map_err(std::io::Error::other)?;
        at += read as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::StoredHead;
    use crate::policy::Variance;

    fn part(range: Range<u64>, tag: &str) -> Arc<Part> {
        let fields = if tag.is_empty() { vec![] } else { vec![("etag".to_owned(), tag.to_owned())] };
        let answer = Answer { head: StoredHead { status: 206, fields }, ..Answer::default() };
        let digest = Digest::of(format!("{range:?}{tag}").as_bytes());
        let variance = Variance::default();
        Arc::new(Part { variance, answer, announced: range.clone(), range, size: 10, digest })
    }

    fn spans(parts: &[Arc<Part>], newest: usize, from: u64) -> Vec<(u64, u64)> {
        chain(parts, &parts[newest], from).into_iter().map(|(_, range)| (range.start, range.end)).collect()
    }

    #[test]
    fn parts_under_one_strong_tag_follow_on_each_other() {
        let parts = [part(5..10, "\"a\""), part(0..3, "\"a\""), part(2..6, "\"a\"")];
        assert_eq!(spans(&parts, 0, 0), [(0, 3), (3, 6), (6, 10)]);
        assert_eq!(spans(&parts, 0, 4), [(4, 6), (6, 10)]);
        assert_eq!(spans(&parts[..2], 0, 0), [(0, 3)]);
        assert!(spans(&parts[..1], 0, 0).is_empty());
    }

    #[test]
    fn no_byte_meets_another_versions() {
        let parts = [part(0..5, "\"a\""), part(5..10, "\"b\"")];
        assert_eq!(spans(&parts, 0, 0), [(0, 5)]);
        assert!(spans(&parts, 1, 0).is_empty());
        let weak = [part(0..5, "W/\"a\""), part(5..10, "W/\"a\"")];
        assert_eq!(spans(&weak, 0, 0), [(0, 5)]);
        assert!(spans(&weak, 1, 0).is_empty());
        let bare = [part(0..5, ""), part(5..10, "")];
        assert_eq!(spans(&bare, 0, 0), [(0, 5)]);
        let short = Arc::new(Part { announced: 5..11, ..(*part(5..10, "\"a\"")).clone() });
        assert_eq!(spans(&[part(0..5, "\"a\""), short], 0, 0), [(0, 5)]);
    }
}
