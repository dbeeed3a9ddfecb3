//! The room `store`.
