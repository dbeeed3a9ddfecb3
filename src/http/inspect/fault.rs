//! What can be wrong with a request, as a sentence for whoever sent it.

use http::StatusCode;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// LF without CR, or more empty lines in front of a request than anybody sends.
    #[error("a line does not end with CR and LF")]
    LineEnd,
    /// Not `method SP target SP version`.
    #[error("the request line is not a method, a target and a version with one space between them")]
    RequestLine,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    #[error("the request is in another version than HTTP/1.1 or HTTP/1.0")]
    Version,
    /// The target has another form than its method allows, or is no URI.
    #[error("the request target is not one that this method can have (RFC 9112 section 3.2)")]
    Target,
    /// `#…` in a target.
    #[error("the request target has a fragment, which is for the client alone")]
    Fragment,
    /// `user:password@` in a target.
    #[error("the request target carries user information: send it as a header field instead")]
    UserInfo,
    /// The target names no valid host.
    #[error("the request target names no valid host")]
    Authority,
    /// The target is longer than any server reads.
    #[error("the request target is too long")]
    TargetTooLong,
    /// The head is too large, or has too many fields.
    #[error("the header section is too large")]
    HeadTooLarge,
    /// A continuation line (RFC 9112 section 5.2).
    #[error("a header field goes on on a second line")]
    Folded,
    /// Whitespace between a field's name and its colon.
    #[error("there is whitespace between a field name and its colon")]
    SpaceBeforeColon,
    /// Not a token.
    #[error("a field name is not a token")]
    FieldName,
    /// A control character.
    #[error("a field value has a control character in it")]
    FieldValue,
    /// Not one number.
    #[error("the Content-Length is not one decimal number")]
    Length,
    /// Not exactly one `chunked`.
    #[error("the Transfer-Encoding is not one `chunked`")]
    Encoding,
    /// Two ways to tell where the body ends.
    #[error("the request has both Content-Length and Transfer-Encoding")]
    TwoFramings,
    /// A body where none can be.
    #[error("a CONNECT request has a body")]
    Body,
    /// None, several, or not a host.
    #[error("the request needs exactly one Host, with a valid host in it")]
    Host,
    /// A chunk whose size or line end is not exact.
    #[error("a chunk of the request body is malformed")]
    Chunk,
    /// What a trailer section must not hold.
    #[error("the trailer section of the request is malformed, or has a field that belongs into the head")]
    Trailer,
    /// The head did not come in time.
    #[error("the head of the request did not come in time")]
    SlowHead,
    /// The body fell silent.
    #[error("the body of the request did not come in time")]
    SlowBody,
}

impl Fault {
    /// The status that says it.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::SlowHead | Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::LineEnd
            | Self::RequestLine
            | Self::Target
            | Self::Fragment
            | Self::UserInfo
            | Self::Authority
            | Self::Folded
            | Self::SpaceBeforeColon
            | Self::FieldName
            | Self::FieldValue
            | Self::Length
            | Self::Encoding
            | Self::TwoFramings
            | Self::Body
            | Self::Host
            | Self::Chunk
            | Self::Trailer => StatusCode::BAD_REQUEST,
        }
    }

    /// Whether the sender was only slow: no offence of anybody.
    pub const fn is_slowness(self) -> bool {
        matches!(self, Self::SlowHead | Self::SlowBody)
    }
}
