//! Sealing: from the site's secret to keys, from keys to sealed datagrams and bearer tokens, and the grants
//! that a token must name.
//!
//! Promises: what opens was made by a node that holds an accepted secret and was not altered; no nonce meets
//! another under one key; key material is wiped when dropped and never printed; input of any shape is refused
//! with an error, never with a panic. Replays are not this room's business alone: [`Window`] is the tool,
//! whoever receives must use it.
//!
//! It fails where the system has no randomness ([`SealError::Random`]) and where a body is too long for a
//! frame. It does not know what a body means, who a peer is or which socket a frame came from.
//!
//! Wire version 1, the frame: `LD` ‖ version (1) ‖ 0 ‖ key id (4) ‖ boot counter (8) ‖ boot random (8) ‖
//! CRC-32C (4) ‖ nonce (12) ‖ AES-256-GCM of (length (2) ‖ body ‖ zeros) ‖ tag (16); integers big-endian, the
//! whole a multiple of 64 and at most 1200 bytes. The checksum covers salt ‖ everything but itself; the 24
//! bytes before it are the associated data. `tests/fixtures/frames/` has vectors.

mod bearer;
mod boot;
mod dump;
mod frame;
mod grant;
mod key;
mod letter;
mod window;

pub use bearer::{Bearer, BearerError, GrantId, Thing};
pub use boot::BootId;
pub use dump::forbid_core_dumps;
pub use frame::{Checked, MAX_BODY, MAX_FRAME, OpenError, Opened, Sealer, VERSION};
pub use grant::{Grants, Refused};
pub use key::{SealError, Secret, SecretError, SiteKeys};
pub use letter::LetterError;
pub use window::Window;
