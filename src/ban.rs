//! The room `ban`.
