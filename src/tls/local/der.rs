//! What a certificate of our own authority says: its name, its last moment, and the domains it may vouch for.
//!
//! Reads only the shape that this program writes (RFC 5280 section 4.1); anything else is no authority of ours.

use yasna::models::{GeneralizedTime, ObjectIdentifier, UTCTime};
use yasna::tags::TAG_UTCTIME;
use yasna::{ASN1Error, ASN1ErrorKind, ASN1Result, BERReader, BERReaderSeq, Tag, parse_der};

use crate::clock::Timestamp;

/// id-ce-nameConstraints.
const NAME_CONSTRAINTS: [u64; 4] = [2, 5, 29, 30];
/// permittedSubtrees in NameConstraints.
const PERMITTED: u64 = 0;
/// dNSName in GeneralName.
const DNS_NAME: u64 = 2;
/// extensions in TBSCertificate.
const EXTENSIONS: u64 = 3;

/// What stands in the certificate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// The common name.
    pub(super) name: String,
    /// The permitted DNS subtrees, sorted.
    pub(super) domains: Vec<String>,
    /// The end of its validity.
    pub(super) not_after: Timestamp,
}

/// Reads a certificate; none if it is not of the shape we write.
pub(super) fn read(certificate: &[u8]) -> Option<Facts> {
    let facts = parse_der(certificate, |reader| {
        reader.read_sequence(|certificate| {
            let facts = certificate.next().read_sequence(to_be_signed)?;
            skip(certificate, 2)?;
            Ok(facts)
        })
    });
    facts.ok().filter(|facts| !facts.domains.is_empty())
}

fn skip(fields: &mut BERReaderSeq<'_, '_>, count: usize) -> ASN1Result<()> {
    (0..count).try_for_each(|_| fields.next().read_der().map(drop))
}

fn to_be_signed(fields: &mut BERReaderSeq<'_, '_>) -> ASN1Result<Facts> {
    // version, serial number, algorithm, issuer
    skip(fields, 4)?;
    let not_after = fields.next().read_sequence(|validity| {
        skip(validity, 1)?;
        time(validity.next())
    })?;
    let name = common_name(fields.next())?;
    // the public key
    skip(fields, 1)?;
    let mut domains = Vec::new();
    fields.next().read_tagged(Tag::context(EXTENSIONS), |extensions| {
        extensions.read_sequence_of(|extension| domains_of(extension, &mut domains))
    })?;
    domains.sort();
    domains.dedup();
    Ok(Facts { name, domains, not_after })
}

fn time(reader: BERReader<'_, '_>) -> ASN1Result<Timestamp> {
    let seconds = if reader.lookahead_tag()? == TAG_UTCTIME {
        reader.read_utctime().map(|time: UTCTime| time.datetime().unix_timestamp())?
    } else {
        reader.read_generalized_time().map(|time: GeneralizedTime| time.datetime().unix_timestamp())?
    };
    Ok(Timestamp::from_seconds(u64::try_from(seconds).unwrap_or(0)))
}

/// A name of exactly one part, as ours are.
fn common_name(reader: BERReader<'_, '_>) -> ASN1Result<String> {
    let mut found = None;
    reader.read_sequence_of(|part| {
        part.read_set_of(|attribute| {
            attribute.read_sequence(|attribute| {
                skip(attribute, 1)?;
                found = Some(attribute.next().read_utf8string()?);
                Ok(())
            })
        })
    })?;
    found.ok_or_else(|| ASN1Error::new(ASN1ErrorKind::Invalid))
}

fn domains_of(extension: BERReader<'_, '_>, into: &mut Vec<String>) -> ASN1Result<()> {
    extension.read_sequence(|fields| {
        let id = fields.next().read_oid()?;
        fields.read_optional(|critical| critical.read_bool())?;
        let content = fields.next().read_bytes()?;
        if id == ObjectIdentifier::from_slice(&NAME_CONSTRAINTS) {
            into.extend(parse_der(&content, |reader| reader.read_sequence(permitted))?);
        }
        Ok(())
    })
}

fn permitted(constraints: &mut BERReaderSeq<'_, '_>) -> ASN1Result<Vec<String>> {
    let mut domains = Vec::new();
    constraints.next().read_tagged_implicit(Tag::context(PERMITTED), |subtrees| {
        subtrees.read_sequence_of(|subtree| {
            subtree.read_sequence(|subtree| {
                let name = |name: BERReader<'_, '_>| name.read_ia5_string();
                domains.push(subtree.next().read_tagged_implicit(Tag::context(DNS_NAME), name)?);
                Ok(())
            })
        })
    })?;
    // what is excluded
    skip(constraints, 1)?;
    Ok(domains)
}
