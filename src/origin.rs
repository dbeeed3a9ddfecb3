//! The room `origin`.
