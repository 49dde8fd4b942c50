//! `tribunal`: arguments and environment in, words and an exit code out.

use std::process::ExitCode;
use tribunal::cli::{Parsed, parse};
use tribunal::console::{Console, Format};
use tribunal::{commands, config};

fn main() -> ExitCode {
    let cli = match parse(std::env::args_os()) {
        Parsed::Run(cli) => cli,
        Parsed::Told(told, exit) => {
            // A closed pipe is the reader's choice.
            let _ = told.print();
            return exit.into();
        }
    };
    let format = if cli.json { Format::Json } else { Format::Text };
    // What is not UTF-8 cannot be a server, a name or a token; paths come as flags.
    let env: config::Environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    commands::run(&cli, &env, &mut Console::of_process(format)).into()
}
