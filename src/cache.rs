//! The room `cache`.
