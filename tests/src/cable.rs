//! The cable between a server and its engine: a socket in front of the real one, that a test can cut and mend.
//!
//! Bytes pass as they are. Cut means what a stopped engine means: open connections end, new ones are refused.

use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// The engine's own socket.
const ENGINE: &str = "/var/run/docker.sock";

/// A cable; whole at first.
pub struct Cable {
    folder: TempDir,
    whole: Mutex<Option<Whole>>,
}

struct Whole {
    stopping: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<UnixStream>>>,
    accepting: JoinHandle<()>,
}

impl Cable {
    /// To the engine of this machine.
    #[must_use]
    pub fn new() -> Self {
        let cable = Self {
            folder: tempfile::tempdir().unwrap(),
            whole: Mutex::new(None),
        };
        cable.mend();
        cable
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// As a server's configuration names it.
    #[must_use]
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Connections pass.
    pub fn mend(&self) {
        let mut whole = self.whole.lock().unwrap();
        assert!(whole.is_none(), "the cable is whole");
        let listener = UnixListener::bind(self.socket()).unwrap();
        let open = Arc::new(Mutex::new(Vec::new()));
        let stopping = Arc::new(AtomicBool::new(false));
        let (stop, opened) = (Arc::clone(&stopping), Arc::clone(&open));
        let accepting = std::thread::spawn(move || {
            loop {
                let (near, _) = listener.accept().unwrap();
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let far = UnixStream::connect(ENGINE).unwrap();
                let mut opened = opened.lock().unwrap();
                opened.push(near.try_clone().unwrap());
                opened.push(far.try_clone().unwrap());
                pass(near.try_clone().unwrap(), far.try_clone().unwrap());
                pass(far, near);
            }
        });
        *whole = Some(Whole {
            stopping,
            open,
            accepting,
        });
    }

    /// No connection passes any more; those that did are gone when this returns.
    pub fn cut(&self) {
        let whole = self.whole.lock().unwrap().take();
        let Whole {
            stopping,
            open,
            accepting,
        } = whole.unwrap_or_else(|| panic!("the cable is cut"));
        stopping.store(true, Ordering::SeqCst);
        // Wakes the one that accepts.
        let _ = UnixStream::connect(self.socket()).unwrap();
        accepting.join().unwrap();
        fs::remove_file(self.socket()).unwrap();
        for end in open.lock().unwrap().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Default for Cable {
    fn default() -> Self {
        Self::new()
    }
}

/// Copy one way until either side is gone; an end is passed on, as half-closed connections need it.
fn pass(mut from: UnixStream, mut to: UnixStream) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        let mut copy = || -> io::Result<bool> {
            let count = from.read(&mut buffer)?;
            to.write_all(&buffer[..count])?;
            Ok(count > 0)
        };
        while copy().unwrap_or(false) {}
        let _ = to.shutdown(Shutdown::Write);
    });
}
