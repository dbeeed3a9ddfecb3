//! The room `discovery`.
