//! Which one change of pins settles a mixed case: runs of it under a single changed pin become a name.
//!
//! A change is named only if a run of as many equal outcomes would hardly come from the mix that was seen before, so a rare
//! failure names nothing. The runs are advice: they are in no verdict.

use serde::{Deserialize, Serialize};

/// One pin that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moved {
    /// The wall clock.
    Clock,
    /// The seed.
    Seed,
    /// PYTHONHASHSEED.
    HashSeed,
    /// The order of the cases.
    Order,
    /// The order of directory listings.
    Listings,
}

impl Moved {
    /// All, in the order in which they are tried.
    pub const ALL: [Self; 5] = [
        Self::Clock,
        Self::Seed,
        Self::HashSeed,
        Self::Order,
        Self::Listings,
    ];

    /// In words, as the end of "another …".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Seed => "seed",
            Self::HashSeed => "hash seed",
            Self::Order => "order of cases",
            Self::Listings => "order of listings",
        }
    }
}
