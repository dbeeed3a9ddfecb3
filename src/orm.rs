//! The room `orm`.
