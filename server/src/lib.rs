//! The server: untrusted commits go in, signed verdicts come out. Each module is one room; `docs/ARCHITECTURE.md` is the map.

pub mod admin;
pub mod clock;
pub mod config;
pub mod draws;
pub mod image;
pub mod metrics;
pub mod notify;
pub mod overlay;
pub mod page;
pub mod pipeline;
pub mod queue;
pub mod reload;
pub mod repository;
pub mod sandbox;
pub mod serve;
pub mod sign;
pub mod store;
mod supervisor;
pub mod traces;
mod upkeep;
pub mod wire;
