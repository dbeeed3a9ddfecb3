//! The room `ecosystem`.
