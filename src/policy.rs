//! The room `policy`.
