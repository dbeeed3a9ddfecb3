//! The engine: one want in, one verified body out; the only room that chooses a source.

mod ledger;
mod view;

pub use ledger::{From, Ledger, Traffic};
pub use view::TransferView;
