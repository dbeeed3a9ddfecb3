//! Whatever no recogniser knows: it promises nothing.

use super::Kind;

pub(super) const KIND: Kind = Kind::mutable("generic");
