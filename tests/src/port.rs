//! The admin port, asked as a collector or a curious page would: plain HTTP/1.1, one request a connection.

use crate::Server;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// What came back.
#[derive(Debug)]
pub struct Said {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// Where the log says that the port is; the newest one.
#[must_use]
pub fn address(server: &Server) -> String {
    let log = server.log();
    let line = log
        .lines()
        .rfind(|line| line.contains("admin port"))
        .unwrap_or_else(|| panic!("there is no admin port:\n{log}"));
    let from = line.find("127.0.0.1:").unwrap();
    let end = |c: char| !c.is_ascii_digit() && c != '.' && c != ':';
    line[from..].split(end).next().unwrap().to_owned()
}

/// Ask it for a path.
#[must_use]
pub fn get(server: &Server, path: &str) -> Said {
    get_as(server, path, "localhost")
}

/// The same, calling it by this name.
#[must_use]
pub fn get_as(server: &Server, path: &str, host: &str) -> Said {
    let mut stream = TcpStream::connect(address(server)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Said {
        status,
        body: body.to_owned(),
    }
}

/// Every line of the metrics with its number.
#[must_use]
pub fn metrics(server: &Server) -> BTreeMap<String, f64> {
    let said = get(server, "/metrics");
    assert_eq!(said.status, 200);
    assert!(said.body.ends_with("# EOF\n"), "{}", said.body);
    let lines = said.body.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}
