//! What an operator does at the server's own machine: each command takes the data directory and gives an `Answer`.
//!
//! All of it works while the server runs; what must not is refused. Never prints, never shows a secret but the one token
//! that was asked for. Fails with `AdminError`, which knows its exit code.

mod answer;
mod data;
mod doctor;
mod error;
mod image;
mod init;
mod key;
mod oracle;
mod replay;
mod repo;
mod selftest;
mod survey;
mod token;
mod upkeep;

pub use answer::{Answer, Table, Text};
pub use data::{Data, Serving};
pub use doctor::doctor;
pub use error::{AdminError, Exit};
pub(crate) use image::provide_default;
pub use image::{build_image, export_image, import_image, list_images};
pub use init::init;
pub(crate) use key::known_signer;
pub use key::{KeyFormat, revoke_key, rotate_key, show_keys};
pub use oracle::Effort;
pub use replay::replay;
pub use repo::{Place, add_repo, list_repos, remove_repo, sync_repo};
pub use selftest::{Row as SelftestRow, SelftestOptions, SelftestWatch, selftest};
pub use token::{list_tokens, new_token, revoke_token};
pub use upkeep::{backup, gc};
