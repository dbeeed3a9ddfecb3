//! The room `peer`.
