//! The room `admin`.
