//! Prints `docs/REASONS.md`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(tribunal_core::reason::page().as_bytes())
}
