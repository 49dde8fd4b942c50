//! Under which verdicts a reason code may stand, and which codes warn only.

use super::Reason;

/// Where a code may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// FAIL of `oracle_integrity`.
    OracleIntegrity,
    /// FAIL of `src_score`.
    SrcScore,
    /// FAIL of `flake_lease`.
    FlakeLease,
    /// A warning: no verdict turns on it.
    Warning,
}

impl Reason {
    /// Every column in which this code may stand; never empty.
    #[must_use]
    pub const fn columns(self) -> &'static [Column] {
        use Column::{FlakeLease, OracleIntegrity, SrcScore, Warning};
        match self {
            Self::OracleEdit
            | Self::LeaseEdit
            | Self::PolicyEdit
            | Self::OracleChangeNeedsMaintainer
            | Self::ManifestDrift
            | Self::CassetteDrift
            | Self::CassettePinLost
            | Self::CassetteUnaccepted
            | Self::CassetteSecret
            | Self::CassetteInvalid
            | Self::SeedDrift
            | Self::OverlaySymlinkEscape
            | Self::OverlayGitlink
            | Self::OverlayRootNotATree
            | Self::OverlayCompiledArtifact
            | Self::OverlayModuleShadow
            | Self::TamperRuntime
            | Self::TamperResultChannel
            | Self::TamperCanary
            | Self::OracleDead => &[OracleIntegrity],
            Self::LfsPointer => &[OracleIntegrity, Warning],
            Self::CaseFailed
            | Self::CaseError
            | Self::MissingCase
            | Self::SkipFromProduct
            | Self::CassetteMiss
            | Self::HeldOutPins
            | Self::CollectionError
            | Self::NoCases
            | Self::NeedsShared => &[SrcScore],
            Self::ExtraCase => &[SrcScore, Warning],
            Self::CassetteGap
            | Self::Timeout
            | Self::OutOfMemory
            | Self::OutputLimit
            | Self::ProcessExit => &[SrcScore, FlakeLease],
            Self::UnleasedSkip => &[FlakeLease, Warning],
            Self::LeaseDigestMismatch
            | Self::LeaseExpired
            | Self::LeaseSignatureMissing
            | Self::LeaseSignatureMismatch
            | Self::LeaseFileInvalid
            | Self::ForbiddenMark
            | Self::MergeLaneRed
            | Self::UnpinnableSource => &[FlakeLease],
            Self::LeaseNotNeeded
            | Self::LeaseUnused
            | Self::WeakLeaseDigest
            | Self::LeaseExpiresSoon
            | Self::OverPinned
            | Self::HeadBehindBase
            | Self::UnscoredChange
            | Self::ThinEvidence
            | Self::PinSensitive
            | Self::StaleBase
            | Self::TestRemoved
            | Self::OracleWeak => &[Warning],
        }
    }
}
