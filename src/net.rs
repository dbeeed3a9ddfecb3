//! The room `net`.
