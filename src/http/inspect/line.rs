//! One field line of a head or of a trailer section.

use super::Fault;

/// Whether a byte may stand in a token (RFC 9110 section 5.6.2).
pub(super) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

pub(super) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| is_token_byte(*byte))
}

/// Name and value of a field line without its CRLF; the value without the whitespace around it.
pub(super) fn field(line: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(Fault::Folded);
    }
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Fault::FieldName)?;
    let (name, value) = line.split_at(colon);
    let value = value.get(1..).unwrap_or_default();
    if !is_token(name) {
        let spaced = matches!(name.last(), Some(b' ' | b'\t'));
        return Err(if spaced { Fault::SpaceBeforeColon } else { Fault::FieldName });
    }
    // no way out in the middle, so that many bytes are compared at once
    let is_control = |byte: u8| ((byte < b' ') & (byte != b'\t')) | (byte == 0x7f);
    if value.iter().fold(false, |found, byte| found | is_control(*byte)) {
        return Err(Fault::FieldValue);
    }
    Ok((name, trimmed(value)))
}

/// Without the spaces and tabs around it, and no other whitespace.
fn trimmed(value: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = value.iter().position(is_text).unwrap_or(value.len());
    let end = value.iter().rposition(is_text).map_or(start, |last| last + 1);
    value.get(start..end).unwrap_or_default()
}
