//! Nix binary caches: a `narinfo` states the digest and size of the archive that it names.

use std::io::BufRead;

use super::lines::Lines;
use super::statement::{Speaker, Unread};
use super::{Kind, Lasts, folder_of, is_hex, parts_of, path_of};
use crate::digest::{Algorithm, Stated, unhex};
use crate::http::Target;

const LINE: usize = 64 * 1024;
/// Nix's own digits: none that look like letters of a rude word.
const DIGITS: &[u8; 32] = b"0123456789abcdfghijklmnpqrsvwxyz";

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    if is_info(path_of(target)) {
        return Some(Kind::mutable("nix"));
    }
    match parts_of(target).as_slice() {
        [.., "nar", file] => {
            let name = file.split('.').next().unwrap_or_default();
            let is_hash = is_hex(name, 64) || (name.len() == 52 && name.bytes().all(|b| DIGITS.contains(&b)));
            let lasts = if is_hash { Lasts::Version } else { Lasts::Nothing };
            Some(Kind::new("nix", lasts))
        }
        _ => None,
    }
}

/// Whether a path is that of a `narinfo`.
pub(super) fn is_info(path: &str) -> bool {
    path.ends_with(".narinfo")
}

pub(super) fn read_info(path: &str, body: impl BufRead, to: &mut Speaker<'_>) -> Result<(), Unread> {
    to.within(folder_of(path));
    let mut lines = Lines::new(body, LINE);
    let (mut url, mut digest, mut size) = (None, None, None);
    while let Some(line) = lines.next()? {
        match line.split_once(": ") {
            Some(("URL", value)) => url = to.by().join(value.trim()).ok(),
            Some(("FileHash", value)) => digest = hash(value.trim()),
            Some(("FileSize", value)) => size = value.trim().parse().ok(),
            _ => {}
        }
    }
    match (url, digest) {
        (Some(url), Some(digest)) => to.say(&url, digest, size),
        _ => Ok(()),
    }
}

/// `sha256:` and 52 of Nix's digits, or hexadecimal.
fn hash(text: &str) -> Option<Stated> {
    let (name, value) = text.split_once(':')?;
    let algorithm = Algorithm::named(name).ok()?;
    let bytes =
        if value.len() == algorithm.length() * 2 { unhex(value).ok() } else { unnix(value, algorithm) };
    Stated::new(algorithm, &bytes?).ok()
}

/// Nix writes the last bits first: digit `n` from the end holds the bits from `5n` on.
fn unnix(text: &str, algorithm: Algorithm) -> Option<Vec<u8>> {
    let length = algorithm.length();
    if text.len() != (length * 8).div_ceil(5) {
        return None;
    }
    let mut bytes = vec![0_u8; length];
    for (n, letter) in text.bytes().rev().enumerate() {
        let digit = u16::try_from(DIGITS.iter().position(|known| *known == letter)?).ok()?;
        let (at, shift) = (n * 5 / 8, n * 5 % 8);
        let [low, high] = (digit << shift).to_le_bytes();
        *bytes.get_mut(at)? |= low;
        match bytes.get_mut(at + 1) {
            Some(next) => *next |= high,
            None if high == 0 => {}
            None => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nix_digits_are_read_as_nix_writes_them() {
        // from the manual of Nix, and of nothing at all
        for (nix, hex) in [
            (
                "1b8m03r63zqhnjf7l5wnldhh7c134ap5vpj0850ymkq1iyzicy5s",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
        ] {
            assert_eq!(hash(&format!("sha256:{nix}")).unwrap().to_string(), format!("sha256:{hex}"));
            assert_eq!(hash(&format!("sha256:{hex}")).unwrap().to_string(), format!("sha256:{hex}"));
        }
        for wrong in ["", "sha256:", "sha256:0", "md6:00", &format!("sha256:{}", "z".repeat(52))] {
            assert_eq!(hash(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(sha256:|sha512:|md5:)?[0-9a-z]{0,110}|\\PC{0,40}") {
            let _unused = hash(&text);
        }
    }
}
