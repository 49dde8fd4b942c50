//! One score from a workspace's commit to its files: the subject is found, what the server lacks is sent, the run is
//! followed, the end is verified and joined.
//!
//! Tells what happens through `Progress` and knows nothing of who listens: a command line, or an agent's call. Never
//! writes to the workspace, never judges, never ends a score that somebody only stopped watching.

mod asked;
mod concluded;
mod follow;
mod send;
mod subject;

pub use asked::Asked;
pub use concluded::{Concluded, expected_of, key_ring};
pub use follow::follow;
pub use send::{is, send_missing};
pub use subject::{Subject, Which};
