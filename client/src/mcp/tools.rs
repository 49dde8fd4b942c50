//! The tools: what each is called, what it takes and answers, and what it leaves as it was.

use super::answers::ScoreAnswer;
use super::arguments::{
    ExplainArguments, LeasesArguments, ScoreArguments, StatusArguments, VerifyArguments,
};
use super::explain::ExplainAnswer;
use super::leases::LeasesAnswer;
use super::verify::VerifyAnswer;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use std::sync::Arc;

/// One of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Ask for a score.
    Score,
    /// Pick one up.
    ScoreStatus,
    /// Its report.
    Explain,
    /// Its files.
    Verify,
    /// Who may be silent.
    Leases,
}

impl Which {
    /// All of them.
    pub(super) const ALL: [Self; 5] = [
        Self::Score,
        Self::ScoreStatus,
        Self::Explain,
        Self::Verify,
        Self::Leases,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Score => "score",
            Self::ScoreStatus => "score_status",
            Self::Explain => "explain",
            Self::Verify => "verify",
            Self::Leases => "leases",
        }
    }

    /// The one of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|which| which.name() == name)
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Score => {
                "Score a commit of a git workspace: the server rebuilds the protected base with only src/ of the commit, \
                 runs the sealed tests several times in a sealed container and signs three verdicts. Commit first. Writes \
                 the verdict files into the workspace (ci_out). Merge only on MERGE_OK. A FAIL answers the reason code, the \
                 case, one failing assertion with its values, the pattern of its attempts, what is owed and what to do next. \
                 The answer always names the score; where it is not completed yet, go on with score_status."
            }
            Self::ScoreStatus => {
                "Where a score is, by its name: also one whose call timed out or lost its connection. With wait_seconds it \
                 waits for the end; of a completed score it answers what score would."
            }
            Self::Explain => {
                "Everything the report of a completed score has, in pages of max_chars: each reason, each attempt, what was \
                 said and read, what is owed; or all there is to one case."
            }
            Self::Verify => {
                "Verify a folder of verdict files as one set for the workspace's HEAD, offline, with the key that is \
                 configured (TRIBUNAL_KEY): what a gate would say."
            }
            Self::Leases => {
                "Leases for sealed cases that may be silent for a while: of a checkout's lease file (what counts is the \
                 protected branch's), or as a score's gate judged them. Only maintainers land leases."
            }
        }
    }

    /// Nothing here reaches further than the configured server; nothing destroys.
    fn annotations(self) -> ToolAnnotations {
        let (title, reads, repeats) = match self {
            Self::Score => ("Score a commit", false, false),
            Self::ScoreStatus => ("Look at a score", true, true),
            Self::Explain => ("Explain a score", true, true),
            Self::Verify => ("Verify verdict files", true, true),
            Self::Leases => ("List leases", true, true),
        };
        ToolAnnotations::with_title(title)
            .read_only(reads)
            .idempotent(repeats)
            .destructive(false)
            .open_world(false)
    }

    /// As the protocol lists it.
    pub(super) fn tool(self) -> Tool {
        let bare = Tool::new(self.name(), self.description(), Arc::new(JsonObject::new()))
            .with_annotations(self.annotations());
        match self {
            Self::Score => shaped::<ScoreArguments, ScoreAnswer>(bare),
            Self::ScoreStatus => shaped::<StatusArguments, ScoreAnswer>(bare),
            Self::Explain => shaped::<ExplainArguments, ExplainAnswer>(bare),
            Self::Verify => shaped::<VerifyArguments, VerifyAnswer>(bare),
            Self::Leases => shaped::<LeasesArguments, LeasesAnswer>(bare),
        }
    }
}

fn shaped<I: JsonSchema + 'static, O: JsonSchema + 'static>(tool: Tool) -> Tool {
    tool.with_input_schema::<I>().with_output_schema::<O>()
}
