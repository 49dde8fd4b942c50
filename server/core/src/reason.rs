//! Every reason code there is, by column: what a verdict says, what a refusal says, what an abort says.
//!
//! Agents and CI key on the code, never on prose. A code is added here, in the report's schema and in the docs
//! together; none is renamed.

mod columns;
mod page;

pub use columns::Column;
pub use page::page;

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $code:literal : $advice:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $(#[doc = $advice] #[serde(rename = $code)] $variant),+
        }
        impl $name {
            /// All of them, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The stable code.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }
            /// One sentence a person can act on.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice),+ }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.code())
            }
        }
        impl std::str::FromStr for $name {
            type Err = crate::id::IdError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($code => Ok(Self::$variant),)+
                    other => Err(crate::id::IdError {
                        what: "a reason code",
                        rule: "one of the documented codes",
                        got: crate::text::shown(other, 60),
                    }),
                }
            }
        }
    };
}

codes! {
    /// Why a verdict is FAIL, or what a warning warns of. Which verdict it belongs to is the judge's knowledge.
    Reason {
        OracleEdit = "oracle-edit": "The patch changes a path that judges it; take the change out, or have a maintainer land it on its own.",
        LeaseEdit = "lease-edit": "The patch changes the lease file; leases are landed by a maintainer, without src in the same patch.",
        PolicyEdit = "policy-edit": "The patch changes the scoring policy; a maintainer lands policy on its own.",
        OracleChangeNeedsMaintainer = "oracle-change-needs-maintainer": "Only a maintainer's token may score a change of the oracle.",
        ManifestDrift = "manifest-drift": "The manifest is not the sorted list of sealed test files; run `tribunal manifest --write` and have a maintainer land it.",
        LfsPointer = "lfs-pointer": "A file holds a Git LFS pointer, its content is not here; commit the content itself.",
        CassetteDrift = "cassette-drift": "A cassette's hash changed without a ledger entry and a note that explain it; restore it, or note which pin moved and why.",
        CassettePinLost = "cassette-pin-lost": "A recorded pin or cassette disappeared; restore it.",
        CassetteUnaccepted = "cassette-unaccepted": "The ledger entry is not accepted by a signer that base allows; run `tribunal cassette accept`.",
        CassetteSecret = "cassette-secret": "A cassette holds a credential; redact it and record again.",
        CassetteInvalid = "cassette-invalid": "A cassette does not follow its schema; mend the key that is named.",
        SeedDrift = "seed-drift": "A seed differs from the policy's seed; there is one seed, in one file.",
        OverlaySymlinkEscape = "overlay-symlink-escape": "A symlink under src leads out of its root; replace it by the file itself.",
        OverlayGitlink = "overlay-gitlink": "A submodule stands under src; commit the files themselves.",
        OverlayRootNotATree = "overlay-root-not-a-tree": "A src root is no longer a directory; restore it.",
        OverlayCompiledArtifact = "overlay-compiled-artifact": "A compiled or start-up artifact stands under src; remove it, only sources are scored.",
        OverlayModuleShadow = "overlay-module-shadow": "A new top-level module shadows the standard library; rename it.",
        TamperRuntime = "tamper-runtime": "Product code reached into the judge while it ran; remove that code.",
        TamperResultChannel = "tamper-result-channel": "What came over the result channel was not written by the harness; product code must leave it alone.",
        TamperCanary = "tamper-canary": "A case that must fail passed; product code changes outcomes.",
        OracleDead = "oracle-dead": "The sealed tests pass even when every product function raises; a maintainer must mend them.",
        CaseFailed = "case-failed": "A sealed case fails; mend the product code.",
        CaseError = "case-error": "A sealed case fails in its set-up or tear-down; mend the product code it calls.",
        MissingCase = "missing-case": "A case that base has was not reported; the product must not make it disappear.",
        ExtraCase = "extra-case": "A case appeared that base does not have; it must come from a sealed function of base, and pass.",
        SkipFromProduct = "skip-from-product": "Product code raised a skip or xfail; remove it.",
        CassetteGap = "cassette-gap": "The outcome differed between attempts; pin what it reads in a cassette, or give it a human-owned property with the fixed seed.",
        CassetteMiss = "cassette-miss": "A case asked for something that its cassette does not answer; record it.",
        HeldOutPins = "held-out-pins": "A case fails under pins that were not announced; the code must hold for any seed and clock.",
        Timeout = "timeout": "A case or attempt ran out of its time; find where the code hangs, or make it faster.",
        OutOfMemory = "out-of-memory": "An attempt hit its memory limit; use less memory.",
        OutputLimit = "output-limit": "A case printed more than is allowed; print less.",
        ProcessExit = "process-exit": "The test process ended before its work was done; product code must not exit it.",
        CollectionError = "collection-error": "A sealed file could not be imported; see the exception.",
        NoCases = "no-cases": "No sealed case passed in all attempts; at least one must.",
        NeedsShared = "needs-shared": "A sealed file needs the product in its own process; a maintainer adds it to the policy's `shared` list.",
        UnleasedSkip = "unleased-skip": "A case is skipped or xfailed without a lease; run it, or have a maintainer lease it (of a touched test this only warns).",
        LeaseDigestMismatch = "lease-digest-mismatch": "The leased test changed since the lease was written; a maintainer renews it with `tribunal lease new`.",
        LeaseExpired = "lease-expired": "The lease has expired; mend the test or have a maintainer renew the lease.",
        LeaseSignatureMissing = "lease-signature-missing": "The lease names no failure signature; add the failure that it covers.",
        LeaseSignatureMismatch = "lease-signature-mismatch": "The leased case fails in another way than its lease says; mend it, or have a maintainer renew the lease.",
        LeaseFileInvalid = "lease-file-invalid": "The lease file does not parse; mend the place that is named.",
        ForbiddenMark = "forbidden-mark": "A touched test gained a mark that silences it; remove the mark.",
        MergeLaneRed = "merge-lane-red": "A touched test fails in every attempt; mend it or the product.",
        UnpinnableSource = "unpinnable-source": "A touched test uses threads or wall-clock sleep, which cannot be pinned; rewrite it without.",
        LeaseNotNeeded = "lease-not-needed": "The leased case passed every time; the lease can go.",
        LeaseUnused = "lease-unused": "A lease matches no case; remove it.",
        WeakLeaseDigest = "weak-lease-digest": "The lease uses the short digest, which ignores constants; renew it with `tribunal lease new`.",
        LeaseExpiresSoon = "lease-expires-soon": "A lease that this score uses expires within a week; mend the test or have a maintainer renew it.",
        OverPinned = "over-pinned": "A recorded pin is never read; drop it with a note.",
        HeadBehindBase = "head-behind-base": "Base has moved on since this branch began; the merge of both was scored; rebase to see it for yourself.",
        UnscoredChange = "unscored-change": "The patch changes paths that are not scored; a person must look at them.",
        ThinEvidence = "thin-evidence": "So few attempts say little about a rare flake; raise `reruns` where that matters.",
        PinSensitive = "pin-sensitive": "The case fails under other pins on base too; list it under pin_sensitive or mend the test.",
        StaleBase = "stale-base": "Base is not the protected tip any more; score again on the tip.",
        TestRemoved = "test-removed": "A touched file lost cases that base has; see that this was meant.",
        OracleWeak = "oracle-weak": "Planted bugs went unnoticed by the sealed tests; add cases that notice them.",
    }
}

codes! {
    /// The request's fault: nothing runs, nothing is signed.
    RefusedCode {
        UnknownRepository = "unknown-repository": "Ask the operator which repositories are registered (`tribunal-server repo list`).",
        UnknownCommit = "unknown-commit": "Send the commit with UploadCommits first, or check the id.",
        NotACommit = "not-a-commit": "Give the id of a commit, not of a tag, tree or blob (`git rev-parse REV^{commit}`).",
        ShortSha = "short-sha": "Give the full 40 or 64 hex digits (`git rev-parse REV`).",
        BaseNotProtected = "base-not-protected": "Name a base in the protected branch's history, or none at all.",
        NoMergeBase = "no-merge-base": "Head shares no history with base; rebase it onto the protected branch.",
        TooLarge = "too-large": "The request is over a limit; make it smaller or ask the operator.",
        BadPath = "bad-path": "Rename the path so that it is portable UTF-8.",
        BadObject = "bad-object": "An object does not pass git fsck; recreate the commit with ordinary git commands.",
        Quota = "quota": "This token is over its rate; wait as long as is said.",
        QueueFull = "queue-full": "The server is busy; retry after a while.",
        PolicyInvalid = "policy-invalid": "The policy in base does not hold; a maintainer mends what is listed.",
        MergeConflict = "merge-conflict": "Head's src conflicts with base's; rebase and resolve it.",
        MissingPrerequisite = "missing-prerequisite": "The bundle builds on commits that the server does not have; send from the protected tip on.",
        UploadIncomplete = "upload-incomplete": "The upload ended early; send it again.",
        RunnerPackageClash = "runner-package-clash": "src holds a package that the runner itself uses; such a repository cannot run shared.",
        Unauthenticated = "unauthenticated": "Give a valid token in the environment or a file.",
        Forbidden = "forbidden": "This token's role does not allow the call.",
        InvalidArgument = "invalid-argument": "Mend the fields that are named.",
        NotFound = "not-found": "There is no such thing, or this token may not see it.",
    }
}

codes! {
    /// Our own trouble: retryable, never signed, costs no quota.
    AbortedCode {
        EngineUnavailable = "engine-unavailable": "The container engine does not answer; retry, or tell the operator.",
        ImageMissing = "image-missing": "The runner image is not there; the operator runs `tribunal-server image build`.",
        DiskFull = "disk-full": "The server's disk is full; tell the operator.",
        ServerRestarted = "server-restarted": "The server was restarted in the middle; ask again.",
        Cancelled = "cancelled": "The score was cancelled; ask again if it is still wanted.",
        Deadline = "deadline": "The machine was too busy to finish in time; ask again.",
        Internal = "internal": "Something broke on the server's side; ask again, and tell the operator the score's name.",
    }
}

/// A refusal: a code, and what in particular is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refused {
    /// Which rule.
    pub code: RefusedCode,
    /// What in particular, fit to be shown.
    pub message: String,
}

impl Refused {
    /// A refusal whose message is already fit to be shown.
    #[must_use]
    pub fn new(code: RefusedCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// An abort: a code, and what in particular broke.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Aborted {
    /// Which kind of trouble.
    pub code: AbortedCode,
    /// What in particular, fit to be shown; never a secret, never candidate text unescaped.
    pub message: String,
}

impl Aborted {
    /// An abort whose message is already fit to be shown.
    #[must_use]
    pub fn new(code: AbortedCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}
