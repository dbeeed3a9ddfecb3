//! Whether a response may be kept, and whether neighbours may have it (RFC 9111 sections 3, 3.5, 5.2).

/// Why a response is not kept: a short reason for `info` and the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoStore {
    /// Only answers to GET are kept.
    #[error("the method is not GET")]
    Method,
    /// A status that is never kept, or is kept only with freshness that the origin did not state.
    #[error("answers with this status are not kept")]
    Status,
    /// The status is kept only with explicit freshness, and the origin stated none.
    #[error("the origin states no lifetime for this status")]
    NoLifetime,
    /// The client asked that nothing be kept.
    #[error("the request says no-store")]
    RequestNoStore,
    /// The origin asked that nothing be kept.
    #[error("the response says no-store")]
    NoStore,
    /// Meant for one user.
    #[error("the response says private")]
    Private,
    /// The request carried `Authorization`, and the origin did not allow sharing.
    #[error("the request carried Authorization")]
    Authorization,
    /// The request carried `Cookie`, and the origin did not say `public`.
    #[error("the request carried a cookie")]
    Cookie,
    /// The response sets a cookie.
    #[error("the response sets a cookie")]
    SetCookie,
    /// `Vary` holds `*`, or something that is no field name: no request can select it again.
    #[error("the response varies on everything")]
    VaryStar,
    /// `Vary` names a field with credentials that the request carried.
    #[error("the response varies on credentials")]
    VarySecret,
    /// The whole is not there: `Content-Range` in an answer that is not 206.
    #[error("the response is partial")]
    Partial,
    /// A `[[rule]]` says never.
    #[error("a rule says never")]
    Rule,
}
