//! How fast bytes may go up and down at a given time of the week: the `[[limits]]` over the rates that hold
//! otherwise. Pure; who asks knows the local time.

use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

use super::hours::Hours;
use crate::unit::Rate;

/// One `[[limits]]`: other rates at some hours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// When it holds; never, where nobody says when.
    #[serde(default)]
    pub at: Hours,
    /// What may be sent to neighbours then; without it what holds otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_rate: Option<Rate>,
    /// What may come from origin servers then; without it what holds otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download_rate: Option<Rate>,
}

/// Both rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// To neighbours.
    pub upload: Rate,
    /// From origin servers.
    pub download: Rate,
}

impl Rates {
    /// What holds at a local time: the first limit that covers it, over these.
    #[must_use]
    pub fn at(self, limits: &[Limit], local: DateTime) -> Self {
        let Some(limit) = limits.iter().find(|limit| limit.at.covers(local)) else { return self };
        Self {
            upload: limit.upload_rate.unwrap_or(self.upload),
            download: limit.download_rate.unwrap_or(self.download),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn the_first_limit_that_covers_the_time_holds() {
        let limit = |at: &str, upload: Option<u64>, download: Option<u64>| Limit {
            at: at.parse().unwrap(),
            upload_rate: upload.map(Rate),
            download_rate: download.map(Rate),
        };
        let limits = [limit("08:00-18:00 mon-fri", Some(5), None), limit("mon-fri", Some(0), Some(9))];
        let base = Rates { upload: Rate(1), download: Rate(2) };
        let monday = date(2026, 11, 30);
        let at = |hour| base.at(&limits, monday.at(hour, 0, 0, 0));
        assert_eq!(at(9), Rates { upload: Rate(5), download: Rate(2) });
        assert_eq!(at(19), Rates { upload: Rate(0), download: Rate(9) });
        assert_eq!(base.at(&limits, date(2026, 12, 5).at(9, 0, 0, 0)), base);
    }
}
