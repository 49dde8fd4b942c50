//! Whoever is told of ends of scores: a small HTTP server on this machine that writes down what it hears and answers as a
//! test wants it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// One request.
#[derive(Debug, Clone)]
pub struct Heard {
    /// Its path and query.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: String,
    /// What it was answered.
    pub status: u16,
}

impl Heard {
    /// A header that must be there.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.get(name);
        found.unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    /// Its body as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

type Book = Arc<Mutex<Vec<Heard>>>;

/// It, and what it heard.
pub struct Receiver {
    address: String,
    heard: Book,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// On a port of its own. What is answered depends on what was heard before, and on what is heard now.
    #[must_use]
    pub fn new(answer: impl Fn(&[Heard], &Heard) -> u16 + Send + 'static) -> Self {
        Self::at("127.0.0.1:0", answer)
    }

    /// At this address.
    #[must_use]
    pub fn at(address: &str, answer: impl Fn(&[Heard], &Heard) -> u16 + Send + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (heard, over) = (Book::default(), Arc::new(AtomicBool::new(false)));
        let (book, end) = (Arc::clone(&heard), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                // Whoever breaks off is not heard.
                let _ = hear(stream.unwrap(), &book, &answer);
            }
        });
        Self {
            address,
            heard,
            over,
            thread: Some(thread),
        }
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Everything so far.
    #[must_use]
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// Wait until so many requests were taken; everything heard.
    #[must_use]
    pub fn taken(&self, count: usize) -> Vec<Heard> {
        self.taken_of(count, |_| true)
    }

    /// The same, of those that matter; everything of them that was heard.
    #[must_use]
    pub fn taken_of(&self, count: usize, matters: impl Fn(&Heard) -> bool) -> Vec<Heard> {
        let mut heard = Vec::new();
        crate::until("it was told", || {
            heard = self.heard();
            heard.retain(|h| matters(h));
            heard.iter().filter(|h| h.status < 300).count() >= count
        });
        heard
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(&self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn hear(
    mut stream: TcpStream,
    book: &Book,
    answer: &impl Fn(&[Heard], &Heard) -> u16,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|l| l.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let mut now = Heard {
        path,
        headers,
        body: String::from_utf8(body).unwrap(),
        status: 0,
    };
    {
        let mut book = book.lock().unwrap();
        now.status = answer(&book, &now);
        book.push(now.clone());
    }
    let status = now.status;
    write!(
        stream,
        "HTTP/1.1 {status} said\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
}
