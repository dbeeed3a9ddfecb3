//! The room `proxy`.
