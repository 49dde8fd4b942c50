//! The network of a sealed room, as its cassettes remember it: orders of PID 1 and requests of the case
//! that runs go in, recorded answers come out, and what was not recorded is told as a miss.
//!
//! Never leaves loopback: there is no code here that connects to anything. Where a cassette is being
//! recorded, a request is handed to PID 1 and its answer awaited; who performs it is not in this room.
//! While no cassette is on, ports are bound and refuse, and no name resolves, as in a room without all
//! this. Fails by ending: PID 1 sees its pipe close.
//!
//! ```text
//! PID 1 --orders--> serve --on/off--> doors (TCP: HTTP or TLS, by the first byte) --> http --> record
//!       <--used, misses, asks--       names (UDP: every name is 127.0.0.1)
//! ```

mod authority;
pub mod control;
mod doors;
mod http;
mod names;
mod record;
mod serve;

pub use serve::{Config, TransportError, serve};
