//! An answer becomes a tool's result that fits: neither its text nor its structured content is longer than was asked for.

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

/// What a tool answers. Two forms of the same: words, and fields.
pub(super) trait Answer: Serialize {
    /// The words.
    fn text(&self) -> String;

    /// Leave out what matters least; whether there was anything left to leave out.
    fn shrink(&mut self) -> bool;

    /// Whether it says that the call came to nothing.
    fn failed(&self) -> bool;
}

/// The result, within this many characters.
pub(super) fn fitted<A: Answer>(mut answer: A, max_chars: usize) -> CallToolResult {
    loop {
        let fields = serde_json::to_value(&answer).unwrap_or(Value::Null);
        let text = answer.text();
        let longest = text.chars().count().max(length(&fields));
        if longest <= max_chars || !answer.shrink() {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(fields);
            result.is_error = Some(answer.failed());
            return result;
        }
    }
}

/// As it goes over the wire.
fn length(fields: &Value) -> usize {
    fields.to_string().chars().count()
}

/// What a character costs within a JSON string.
pub(super) const fn in_json(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\t' => 2,
        _ => 1,
    }
}
