//! The page as a plain HTTP client has it: one request a connection, a cookie or a token where there is one.

use crate::{Server, port};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The head's lines, names in lower case.
    pub head: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// A header's value, empty where there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let mut lines = self.head.iter();
        lines.find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }

    /// The cookie that it sets, as it is sent back.
    #[must_use]
    pub fn cookie(&self) -> String {
        let set = self.header("set-cookie");
        set.split(';').next().unwrap_or_default().to_owned()
    }
}

/// Somebody who asks.
#[derive(Debug, Clone)]
pub struct Browser {
    address: String,
    host: String,
    lines: Vec<String>,
}

impl Browser {
    /// Somebody who shows nothing.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        let address = port::address(server);
        Self {
            host: address.clone(),
            address,
            lines: Vec::new(),
        }
    }

    /// Somebody who shows this token in each request.
    #[must_use]
    pub fn bearer(server: &Server, token: &str) -> Self {
        Self::of(server).with(&format!("authorization: Bearer {token}"))
    }

    /// With one more line.
    #[must_use]
    pub fn with(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Who calls the server by this name.
    #[must_use]
    pub fn calling(mut self, host: &str) -> Self {
        host.clone_into(&mut self.host);
        self
    }

    /// GET.
    #[must_use]
    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    /// A form that is sent.
    #[must_use]
    pub fn post(&self, path: &str, form: &str) -> Answer {
        self.ask("POST", path, form)
    }

    /// Any request.
    #[must_use]
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        let mut text = String::new();
        let mut stream = self.sent(method, path, body, Duration::from_secs(20));
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let (status, head) = read_head(head);
        Answer {
            status,
            head,
            body: body.to_owned(),
        }
    }

    fn sent(&self, method: &str, path: &str, body: &str, patience: Duration) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(patience)).unwrap();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
            self.host
        );
        for line in &self.lines {
            head.push_str(line);
            head.push_str("\r\n");
        }
        if !body.is_empty() {
            let length = body.len();
            head.push_str(&format!(
                "content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n"
            ));
        }
        write!(stream, "{head}\r\n{body}").unwrap();
        stream
    }

    /// Events of an address, as they come, until it ends; each as its kind and its data.
    #[must_use]
    pub fn events(&self, path: &str) -> Events {
        let stream = self.sent("GET", path, "", Duration::from_secs(60));
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(
                lines.read_line(&mut head).unwrap() > 0,
                "no answer: {head:?}"
            );
        }
        let (status, head) = read_head(&head);
        Events {
            status,
            head,
            lines,
        }
    }
}

fn read_head(text: &str) -> (u16, Vec<(String, String)>) {
    let mut lines = text.trim_end().split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let head = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    (status.parse().unwrap(), head)
}

/// A stream of events.
pub struct Events {
    /// The status.
    pub status: u16,
    /// The head's lines.
    pub head: Vec<(String, String)>,
    lines: BufReader<TcpStream>,
}

impl Iterator for Events {
    type Item = (String, String);

    /// The next one; comments and the sizes of chunks are passed over. `None` once the server has ended it.
    fn next(&mut self) -> Option<(String, String)> {
        let (mut kind, mut data) = (String::new(), None);
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("event: ") {
                kind = text.to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = Some(text.to_owned());
            } else if line.is_empty()
                && let Some(data) = data.take()
            {
                return Some((kind, data));
            }
        }
    }
}
