//! Packed documents: gzip, xz, zstd and brotli, told by their first bytes rather than by names, which lie; bounded,
//! so that a small file cannot become a large one.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};

/// How many times a document may be packed: an index that is a packed file, packed again on its way.
const LAYERS: usize = 2;
/// The most memory a decoder may ask for: what the strongest usual setting of each needs, and some more.
const WINDOW: u64 = 128 * 1024 * 1024;

/// The input unpacked, at most `most` bytes of it: what is longer ends with an error. `brotli` says that its
/// outermost packing is brotli, which has no mark of its own.
pub(super) fn unpack<'a>(input: impl Read + 'a, brotli: bool, most: u64) -> Result<Box<dyn BufRead + 'a>> {
    let mut input: Box<dyn BufRead + 'a> = Box::new(BufReader::new(input));
    if brotli {
        let decoder = brotli_decompressor::Decompressor::new(input, 16 * 1024);
        input = Box::new(BufReader::new(Limited { input: decoder, left: most }));
    }
    for _ in 0..LAYERS {
        let mut first = [0; 6];
        let known = peek(&mut input, &mut first)?;
        let unpacked: Box<dyn Read + 'a> = match first.get(..known).unwrap_or_default() {
            [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(again(&first, known, input))),
            [0xfd, b'7', b'z', b'X', b'Z', 0] => {
                let most_kib = u32::try_from(WINDOW / 1024).unwrap_or(u32::MAX);
                let input = again(&first, known, input);
                Box::new(lzma_rust2::XzReader::new_mem_limit(input, true, most_kib))
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                let input = again(&first, known, input);
                let decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(input, WINDOW);
                Box::new(decoder.map_err(Error::other)?)
            }
            _ => {
                return Ok(Box::new(BufReader::new(Limited {
                    input: again(&first, known, input),
                    left: most,
                })));
            }
        };
        input = Box::new(BufReader::new(Limited { input: unpacked, left: most }));
    }
    Ok(input)
}

/// The first bytes, as many as there are.
fn peek(input: &mut impl Read, first: &mut [u8]) -> Result<usize> {
    let mut known = 0;
    while let Some(rest) = first.get_mut(known..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(count) => known += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(known)
}

/// The input with its first bytes back.
fn again<'a>(first: &[u8], known: usize, input: Box<dyn BufRead + 'a>) -> impl BufRead + 'a {
    let first = first.get(..known).unwrap_or_default().to_vec();
    std::io::Cursor::new(first).chain(input)
}

/// Input that ends with an error where it should have ended.
struct Limited<R> {
    input: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.input.read(buffer)?;
        self.left = self
            .left
            .checked_sub(count as u64)
            .ok_or_else(|| Error::new(ErrorKind::InvalidData, "it is longer than is read"))?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn all(bytes: &[u8], brotli: bool, most: u64) -> Result<Vec<u8>> {
        let mut unpacked = Vec::new();
        unpack(bytes, brotli, most)?.read_to_end(&mut unpacked)?;
        Ok(unpacked)
    }

    #[test]
    fn every_packing_is_told_by_its_first_bytes() {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/packed");
        let plain = std::fs::read(format!("{fixtures}/Packages")).unwrap();
        for (file, brotli) in [
            ("Packages", false),
            ("Packages.gz", false),
            ("Packages.xz", false),
            ("Packages.zst", false),
            ("Packages.br", true),
        ] {
            let packed = std::fs::read(format!("{fixtures}/{file}")).unwrap();
            assert!(all(&packed, brotli, 100_000).unwrap() == plain, "{file}");
            assert!(all(&packed, brotli, 100).is_err(), "{file}");
            // packed again on the way
            assert!(
                all(&gzip(&packed), false, 100_000).is_ok_and(|found| brotli || found == plain),
                "{file}"
            );
            // cut short
            let cut = packed.get(..packed.len() / 2).unwrap();
            assert!(
                all(cut, brotli, 100_000).is_ok_and(|found| found.len() < plain.len()) || file != "Packages"
            );
        }
        assert_eq!(all(b"", false, 10).unwrap(), b"");
        assert_eq!(all(b"\x1f", false, 10).unwrap(), b"\x1f");
    }

    #[test]
    fn a_bomb_ends_at_the_limit() {
        let bomb = gzip(&vec![0; 50_000_000]);
        assert!(bomb.len() < 100_000);
        let refused = all(&bomb, false, 1_000_000).unwrap_err();
        assert_eq!(refused.to_string(), "it is longer than is read");
        assert!(all(&gzip(&bomb), false, 1_000_000).is_err());
        // three times packed is not unpacked three times
        let thrice = gzip(&gzip(&gzip(b"x")));
        assert_eq!(all(&thrice, false, 1000).unwrap().get(..2), Some(&[0x1f, 0x8b][..]));
    }

    #[test]
    fn a_decoder_that_asks_for_too_much_memory_gets_none() {
        // a zstd frame whose head asks for a window of 2 GiB
        let head = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00];
        assert!(all(&head, false, 1000).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            start in prop::sample::select(vec![
                &b""[..], b"\x1f\x8b\x08\x00", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd",
            ]),
            bytes: Vec<u8>,
            brotli: bool,
        ) {
            let _unused = all(&[start, &bytes].concat(), brotli, 10_000);
        }
    }
}
