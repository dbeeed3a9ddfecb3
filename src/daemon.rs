//! The room `daemon`.
