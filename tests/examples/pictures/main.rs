//! Pictures of the page for docs/page: a server of its own with a small history, drawn by `tests/browser/pictures.py`.
//!
//! With `serve` it shows the page until its standard input ends: for whoever changes it. With `hostile` it shows what
//! candidates write.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool of ours ends at the first surprise and talks to a person"
)]

mod shop;

use std::io::Read as _;
use tribunal_tests::{Chromium, Role, Server, binaries, hostile, port};

const CONFIG: &str =
    "[admin]\nlisten = \"127.0.0.1:0\"\n[calls]\nburst = 10000\nheartbeat = \"1s\"\n";

fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    let server = Server::with_config(CONFIG);
    let operator = server.token(Role::Operator, None);
    if what == "hostile" {
        hostile::scored(&hostile::stage(&server));
    } else {
        let history = shop::history(&server);
        if what != "serve" {
            let chromium = Chromium::found().unwrap();
            let out = binaries::root().join("docs/page");
            let out = out.to_str().unwrap();
            shop::while_one_runs(&server, &operator, |path| {
                let views = [out.to_owned(), format!("running={path}")];
                chromium.draws(&server, &operator, &views).holds();
            });
            chromium
                .draws(&server, &operator, &history.views(out))
                .holds();
            server.shutdown();
            return;
        }
    }
    println!("http://{} {operator}", port::address(&server));
    let _until_the_end = std::io::stdin().read_to_string(&mut String::new());
    server.shutdown();
}
