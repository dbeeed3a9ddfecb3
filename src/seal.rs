//! The room `seal`.
