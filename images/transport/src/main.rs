//! The program PID 1 starts in a room that has cassettes: orders on standard input, answers on standard
//! output, further ports as arguments. Everything it does is in the library.

use std::os::fd::AsFd;
use std::process::ExitCode;
use tokio::net::unix::pipe;
use tribunal_transport::{Config, TransportError, serve};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("transport: failed to {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), TransportError> {
    let config = Config::of_room(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(TransportError::Pipe)?;
    runtime.block_on(async {
        // Duplicates: a descriptor is owned once, and these two belong to the standard library.
        let orders = std::io::stdin().as_fd().try_clone_to_owned();
        let answers = std::io::stdout().as_fd().try_clone_to_owned();
        let orders = orders
            .and_then(pipe::Receiver::from_owned_fd)
            .map_err(TransportError::Pipe)?;
        let answers = answers
            .and_then(pipe::Sender::from_owned_fd)
            .map_err(TransportError::Pipe)?;
        serve(config, orders, answers).await
    })
}
