//! What happened, as one number: two runs of one seed must come to the same.

use std::time::Duration;

use larder::discovery::Kind;
use larder::seal::GrantId;

/// FNV-1a over everything that was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Trace {
    /// A node said this then. Grants are drawn by the operating system, and nothing follows from what they are.
    pub fn note(&mut self, at: Duration, who: usize, said: &Kind) {
        let mut said = said.clone();
        if let Kind::Have { answers, .. } = &mut said {
            answers.iter_mut().for_each(|answer| answer.grant = GrantId([0; 16]));
        }
        for byte in format!("{at:?} {who} {said:?}").bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
