//! The protocol's side: calls are taken apart, answers put together, tasks kept; what is said is said elsewhere.

use super::Sources;
use super::answers::{ScoreAnswer, State};
use super::arguments::{
    Budgeted, ExplainArguments, LEAST_CHARS, LeasesArguments, MOST_SECONDS, ScoreArguments,
    StatusArguments, VerifyArguments,
};
use super::budget::{Answer, fitted};
use super::explain::{ExplainAnswer, explain};
use super::leases::{LeasesAnswer, leases};
use super::reports::Reports;
use super::scores::{score, status};
use super::telling::Audience;
use super::tools::Which;
use super::verify::{VerifyAnswer, verify};
use crate::failure::Failure;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CreateTaskResult,
    ErrorCode, GetTaskParams, GetTaskResult, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tribunal_core::text::shown;

/// What a client may tell its model about all tools together.
const INSTRUCTIONS: &str = "\
Tribunal judges commits by tests that you can read and not change. Loop: edit src/, commit, call score; on MERGE_BLOCKED do \
what its findings say and score again; stop at MERGE_OK. Never edit sealed tests, leases, cassettes or the policy to get \
there: that is a FAIL of its own. A score that is not completed yet goes on by itself: score_status picks it up by its name.";

/// How long a finished task can still be asked for.
const KEPT_MS: u64 = 2 * MOST_SECONDS * 1000;
/// How often a client should look.
const POLL_MS: u64 = 1000;

/// The server that one client talks to.
#[derive(Clone)]
pub(super) struct Tribunal {
    sources: Sources,
    tasks: TaskManager,
    reports: Reports,
}

impl Tribunal {
    pub(super) fn new(sources: Sources) -> Self {
        Self {
            sources,
            tasks: TaskManager::new(),
            reports: Reports::default(),
        }
    }

    /// A score as a task: the client polls, and no call has to wait.
    fn as_task(&self, arguments: JsonObject) -> CallToolResponse {
        let mut arguments: ScoreArguments = match taken(arguments) {
            Ok(arguments) => arguments,
            Err(failure) => return score_failed(&failure).into(),
        };
        arguments.wait_seconds = MOST_SECONDS;
        let sources = self.sources.clone();
        let options = TaskOptions::new()
            .with_ttl_ms(KEPT_MS)
            .with_poll_interval_ms(POLL_MS);
        let task = self.tasks.spawn(options, move |context| {
            Box::pin(async move {
                let max_chars = arguments.max_chars;
                let audience = Audience::Task(context.clone());
                tokio::select! {
                    answer = score(arguments, &sources, audience) => Ok(fitted(answer, max_chars)),
                    () = context.cancelled() => Err(TaskExit::Cancelled),
                }
            })
        });
        CreateTaskResult::new(task).into()
    }

    async fn answer(
        &self,
        which: Which,
        arguments: JsonObject,
        audience: Audience,
    ) -> CallToolResult {
        let sources = &self.sources;
        match which {
            Which::Score => match taken::<ScoreArguments>(arguments) {
                Ok(arguments) => {
                    let max = arguments.max_chars;
                    fitted(score(arguments, sources, audience).await, max)
                }
                Err(failure) => score_failed(&failure),
            },
            Which::ScoreStatus => match taken::<StatusArguments>(arguments) {
                Ok(arguments) => {
                    let max = arguments.max_chars;
                    fitted(status(arguments, sources, audience).await, max)
                }
                Err(failure) => score_failed(&failure),
            },
            Which::Explain => match taken::<ExplainArguments>(arguments) {
                Ok(arguments) => fitted(
                    explain(&arguments, sources, &self.reports).await,
                    arguments.max_chars,
                ),
                Err(failure) => least(ExplainAnswer::failed(None, 0, &failure)),
            },
            Which::Verify => match taken::<VerifyArguments>(arguments) {
                Ok(arguments) => fitted(verify(&arguments, sources), arguments.max_chars),
                Err(failure) => least(VerifyAnswer::failed(&failure)),
            },
            Which::Leases => match taken::<LeasesArguments>(arguments) {
                Ok(arguments) => fitted(
                    leases(&arguments, sources, &self.reports).await,
                    arguments.max_chars,
                ),
                Err(failure) => least(LeasesAnswer::failed(&failure)),
            },
        }
    }
}

/// Arguments as the tool takes them. A mistake is told to the model, which can mend it.
fn taken<T: DeserializeOwned + Budgeted>(arguments: JsonObject) -> Result<T, Failure> {
    let bad = |why: String| {
        let next = "look at the tool's input schema";
        Failure::usage("read the arguments", shown(&why, 300), next)
    };
    let taken: T =
        serde_json::from_value(Value::Object(arguments)).map_err(|e| bad(e.to_string()))?;
    match taken.out_of_bounds() {
        Some(why) => Err(bad(why)),
        None => Ok(taken),
    }
}

fn score_failed(failure: &Failure) -> CallToolResult {
    least(ScoreAnswer::failed(None, State::Unknown, failure))
}

/// An answer to arguments that named no budget that holds.
fn least<A: Answer>(answer: A) -> CallToolResult {
    fitted(answer, LEAST_CHARS)
}

impl ServerHandler for Tribunal {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tasks()
            .build();
        let us = Implementation::new("tribunal", env!("CARGO_PKG_VERSION"))
            .with_title("Tribunal")
            .with_description(
                "Three signed verdicts on a commit, from a server that the commit cannot reach",
            );
        ServerConfig::new(capabilities)
            .with_server_info(us)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = Which::ALL.into_iter().map(Which::tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Which::named(name).map(Which::tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let which = Which::named(&request.name).ok_or_else(|| {
            let told = format!("there is no tool {}", shown(&request.name, 100));
            ErrorData::new(ErrorCode::INVALID_PARAMS, told, None)
        })?;
        let arguments = request.arguments.unwrap_or_default();
        let has_tasks = context
            .client_capabilities()
            .is_some_and(|capabilities| capabilities.supports_tasks());
        if which == Which::Score && has_tasks {
            return Ok(self.as_task(arguments));
        }
        let audience = match context.meta.get_progress_token() {
            Some(token) => Audience::Caller(context.peer.clone(), token),
            None => Audience::Nobody,
        };
        tokio::select! {
            result = self.answer(which, arguments, audience) => Ok(result.into()),
            () = context.ct.cancelled() => {
                Err(ErrorData::internal_error("the call was cancelled", None))
            }
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks
            .get_task(&request.task_id)
            .map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks
            .update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}
