//! The room `rest`.
