//! The room `index`.
