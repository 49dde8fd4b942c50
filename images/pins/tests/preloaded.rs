//! The library as it is shipped, but for where it looks for its page: compiled by rustc alone, preloaded
//! into this machine's python3 and coreutils, under pages that lie far from the real time on both sides.
//!
//! What only a container can show (PID 1, `/etc/ld.so.preload`, empty environments) is tested with the
//! runner image.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first surprise"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

const CLOCK: u32 = 1;
const ENTROPY: u32 = 2;
const LISTING: u32 = 4;

/// 2026-09-12T00:00:00Z, the policy's default, and two that are years away from any machine's clock.
const DEFAULT: i64 = 1_789_171_200;
const PAST: i64 = 86_400;
const FUTURE: i64 = 4_102_444_800;

static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libtribunal_pins.so");
    let status = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "--crate-name",
            "tribunal_pins",
            "--crate-type",
            "cdylib",
            "--edition",
            "2024",
        ])
        .args([
            "-C",
            "opt-level=2",
            "-C",
            "panic=abort",
            "--cfg",
            "pins_test_page",
            "src/lib.rs",
            "-o",
        ])
        .arg(&library)
        .status()
        .unwrap();
    assert!(status.success());
    library
});

/// A page as PID 1 writes it.
struct Page {
    file: PathBuf,
    flags: u32,
    seconds: i64,
    cpus: u32,
    key: [u8; 32],
}

impl Page {
    fn new(name: &str, flags: u32, seconds: i64) -> Self {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}"));
        let page = Self {
            file,
            flags,
            seconds,
            cpus: 0,
            key: [7; 32],
        };
        page.write();
        page
    }

    fn write(&self) {
        let mut bytes = Vec::new();
        bytes.extend(b"TRBPINS1");
        bytes.extend(2_u32.to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        bytes.extend(self.seconds.to_le_bytes());
        bytes.extend(123_456_789_u32.to_le_bytes());
        bytes.extend(self.cpus.to_le_bytes());
        bytes.extend(self.key);
        bytes.resize(4096, 0);
        // In place: a process that has mapped the file must see it.
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&self.file)
            .unwrap();
        file.write_all(&bytes).unwrap();
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["60", program])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("TZ", "UTC")
            .env("PYTHONHASHSEED", "0")
            .env("LD_PRELOAD", &*LIBRARY)
            .env("TRIBUNAL_TEST_PAGE", &self.file);
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program).args(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}: {errors}",
            output.status
        );
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    fn python(&self, code: &str) -> String {
        self.run("python3", &["-c", code])
    }
}

fn script(name: &str) -> String {
    format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn table(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn every_wait_lasts_as_long_as_it_was_asked_to() {
    for (name, seconds) in [
        ("waits-past", PAST),
        ("waits-default", DEFAULT),
        ("waits-future", FUTURE),
    ] {
        let waits = table(
            &Page::new(name, CLOCK | ENTROPY | LISTING, seconds)
                .run("python3", &[&script("waits.py")]),
        );
        assert!(waits.len() >= 38, "{} waits", waits.len());
        for (wait, took) in waits {
            let took: u64 = took.parse().unwrap();
            // A busy machine may be late; it is never early, and never waits for the other clock.
            assert!(
                (245..10_000).contains(&took),
                "{wait} took {took} ms under a clock of {seconds}"
            );
        }
    }
}

#[test]
fn the_wall_clock_stands_at_the_pin_and_the_others_run() {
    let page = Page::new("clock", CLOCK, DEFAULT);
    assert_eq!(
        page.run("date", &["-u", "+%Y-%m-%dT%H:%M:%S.%N"]),
        "2026-09-12T00:00:00.123456789"
    );
    let report = page.python(
        r#"
import ctypes, datetime, os, tempfile, time
libc = ctypes.CDLL(None)
print(*(time.clock_gettime_ns(clock) for clock in (0, 5, 11)))
print(time.time_ns(), datetime.datetime.now(datetime.timezone.utc).isoformat(), libc.time(None))
value = (ctypes.c_long * 2)()
libc.gettimeofday(value, None); print(list(value))
libc.timespec_get(value, 1); print(list(value))
libc.syscall(ctypes.c_long({"x86_64": 228, "aarch64": 113}[os.uname().machine]), 0, value); print(list(value))
clocks = time.monotonic_ns, time.perf_counter_ns, time.process_time_ns
before = [clock() for clock in clocks]
sum(range(300000))
print(all(clock() > then for clock, then in zip(clocks, before)), time.clock_getres(0) < 0.1)
with tempfile.NamedTemporaryFile() as file:
    print(abs(os.stat(file.name).st_mtime - time.time()) > 1)
"#,
    );
    let pin = "1789171200123456789";
    let value = "[1789171200, 123456789]";
    assert_eq!(
        report,
        format!(
            "{pin} {pin} {pin}\n{pin} 2026-09-12T00:00:00.123456+00:00 1789171200\n\
             [1789171200, 123456]\n{value}\n{value}\nTrue True\nTrue"
        )
    );
}

#[test]
fn a_page_that_is_rewritten_is_seen_by_processes_that_run() {
    let mut page = Page::new("rewritten", CLOCK | ENTROPY, DEFAULT);
    let code = "import os, sys, time\nfor line in sys.stdin: print(int(time.time()), os.urandom(4).hex(), flush=True)";
    let mut child = page
        .command("python3")
        .args(["-c", code])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    let mut ask = || {
        orders.write_all(b"\n").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        let (clock, entropy) = answer.trim().split_once(' ').unwrap();
        (clock.parse::<i64>().unwrap(), entropy.to_owned())
    };
    let first = ask();
    assert_eq!(first.0, DEFAULT);
    page.seconds = PAST;
    page.key = [8; 32];
    page.write();
    let second = ask();
    assert_eq!(second.0, PAST);
    assert_ne!(second.1, first.1);
    // The same key begins nothing anew; going back to a key does, from its first block.
    assert_ne!(ask().1, second.1);
    page.key = [7; 32];
    page.write();
    let again = ask().1;
    page.key = [8; 32];
    page.write();
    let back = ask().1;
    page.key = [7; 32];
    page.write();
    assert_eq!(ask().1, again);
    assert_ne!(back, again);
    page.flags = 0;
    page.write();
    assert!(ask().0 > 1_700_000_000 && ask().0 != DEFAULT);
    drop(orders);
    assert!(child.wait().unwrap().success());
}

#[test]
fn entropy_is_the_same_in_every_run_and_different_in_every_process() {
    let page = Page::new("entropy", ENTROPY, DEFAULT);
    let first = page.run("python3", &[&script("entropy.py")]);
    let second = page.run("python3", &[&script("entropy.py")]);
    assert_eq!(first, second);
    let mut draws = table(&first);
    let environment = draws.remove("environment").unwrap();
    assert_eq!(environment, "['LD_PRELOAD', 'TRIBUNAL_TEST_PAGE']");
    assert!(draws.len() >= 21, "{first}");
    let mut seen = BTreeMap::new();
    for (name, value) in draws {
        if let Some(other) = seen.insert(value.clone(), name.clone()) {
            panic!("{name} and {other} both drew {value}");
        }
    }
    let mut other = Page::new("entropy-other", ENTROPY, DEFAULT);
    other.key = [9; 32];
    other.write();
    assert_ne!(
        table(&other.run("python3", &[&script("entropy.py")])).get("urandom"),
        table(&first).get("urandom")
    );
}

#[test]
fn a_stream_can_be_recomputed_from_the_documentation() {
    let page = Page::new("recomputed", ENTROPY, DEFAULT);
    let code = "
import hashlib, os, sys
drawn = os.urandom(40).hex()
arguments = open('/proc/self/cmdline', 'rb').read()
name = hashlib.sha256(b'argv' + arguments).digest()
def block(number):
    return hashlib.sha256(b'tribunal-entropy' + bytes([7] * 32) + name + number.to_bytes(8, 'little')).hexdigest()
blocks = [block(number) for number in range(200)]
print(any(drawn == (a + b)[:80] for a, b in zip(blocks, blocks[1:])))
";
    // The interpreter itself, started by a program that has no name to give: no launcher between.
    let python = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    let direct = Command::new(String::from_utf8(python.stdout).unwrap().trim())
        .args(["-c", code])
        .env("LD_PRELOAD", &*LIBRARY)
        .env("TRIBUNAL_TEST_PAGE", &page.file)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&direct.stdout).trim(), "True");
}

#[test]
fn the_cpu_count_is_the_pages_when_it_has_one() {
    let mut page = Page::new("cpus", CLOCK, DEFAULT);
    let code = "import os; print(os.cpu_count(), len(os.sched_getaffinity(0)), os.sysconf('SC_NPROCESSORS_CONF'))";
    let real = page.python(code);
    page.cpus = 77;
    page.write();
    assert_eq!(page.python(code), "77 77 77");
    assert_eq!(page.run("nproc", &[]), "77");
    assert_ne!(real, "77 77 77");
}

#[test]
fn what_is_asked_for_is_counted() {
    let counts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("counts");
    std::fs::write(&counts, [0; 4096]).unwrap();
    let page = Page::new("counted", CLOCK | ENTROPY | LISTING, DEFAULT);
    let mut command = page.command("python3");
    command
        .env("TRIBUNAL_TEST_COUNTS", &counts)
        .args(["-c", COUNTED]);
    let output = command.output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = [
        "wall",
        "monotonic",
        "entropy",
        "urandom",
        "listing",
        "socket",
        "server",
        "sleep",
        "thread",
    ];
    for (cell, name) in names.into_iter().enumerate() {
        let rises = table(&told)
            .get(name)
            .map(|rises| rises.split(' ').map(|n| n.parse().unwrap()).collect());
        let rises: Vec<u32> = rises.unwrap();
        assert!(rises[cell] >= 1, "{name} {rises:?}");
        // A thread and a sleep take locks and ask how long they took; nothing else shows in another cell.
        let others = rises.iter().enumerate();
        let others: Vec<_> = others
            .filter(|&(other, rise)| other != cell && other != 1 && *rise > 0)
            .collect();
        assert!(others.is_empty(), "{name} {rises:?}");
    }
    // Nothing is counted where there is no page, and nothing fails for it.
    assert_eq!(page.python("import time; time.time(); print(1)"), "1");
}

const COUNTED: &str = r#"
import os, socket, struct, threading, time
fd = os.open(os.environ["TRIBUNAL_TEST_COUNTS"], os.O_RDONLY)
def read(): return struct.unpack("<9I", os.pread(fd, 36, 0))
def device():
    with open("/dev/urandom", "rb", 0) as file:
        file.read(1)
def connect():
    with socket.socket() as one:
        one.connect_ex(("127.0.0.1", 9))
def serve():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
def thread():
    one = threading.Thread(target=int)
    one.start()
    one.join()
acts = dict(
    wall=time.time, monotonic=time.monotonic, entropy=lambda: os.urandom(1), urandom=device,
    listing=lambda: os.listdir("/"), socket=connect, server=serve, sleep=lambda: time.sleep(0.001), thread=thread,
)
for name, act in acts.items():
    before = read()
    act()
    print(name, " ".join(str((late - early) % 2**32 if late >= early else 0) for early, late in zip(before, read())), sep="\t")
"#;

#[test]
fn listings_are_in_byte_order_and_nothing_is_lost() {
    let folder = tempfolder("listing");
    let mut names: Vec<String> = (0..300)
        .map(|number| format!("n{}", number * 7919 % 1000))
        .collect();
    names.extend(["-dash", "Ω", "ZZ", ".hidden"].map(str::to_owned));
    for name in &names {
        std::fs::write(folder.join(name), "").unwrap();
    }
    names.sort();
    let page = Page::new("listing", LISTING, DEFAULT);
    let code = format!(
        r#"
import os
os.chdir({folder:?})
print(*os.listdir())
print(*(entry.name for entry in os.scandir()))
fd = os.open(".", os.O_RDONLY)
print(*os.listdir(fd))
print(*os.listdir(fd))
print(len(os.listdir("/proc/self/fd")))
"#
    );
    let text = page.python(&code);
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().take(4) {
        assert_eq!(line.split(' ').collect::<Vec<_>>(), names);
    }
    assert!(lines.get(4).unwrap().parse::<u32>().unwrap() < 20);
    let listed = page.run("ls", &["-U", "-A", folder.to_str().unwrap()]);
    assert_eq!(listed.lines().collect::<Vec<_>>(), names);
}

#[test]
fn listings_can_be_sought_and_read_while_they_change() {
    let folder = tempfolder("seeking");
    for name in ["c", "a", "b"] {
        std::fs::write(folder.join(name), "").unwrap();
    }
    let code = format!(
        r#"
import ctypes, os
libc = ctypes.CDLL(None)
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long
class Stream:
    def __init__(self): self.stream = ctypes.c_void_p(libc.opendir({folder:?}.encode()))
    def next(self):
        entry = libc.readdir(self.stream)
        return None if entry is None else ctypes.string_at(entry + 19).decode()
stream = Stream()
start = libc.telldir(stream.stream)
print(stream.next(), stream.next(), stream.next())
after_a = libc.telldir(stream.stream)
print(stream.next())
libc.seekdir(stream.stream, ctypes.c_long(after_a)); print(stream.next(), stream.next(), stream.next())
libc.seekdir(stream.stream, ctypes.c_long(start)); print(stream.next())
open({folder:?} + "/aa", "w").close()
libc.rewinddir(stream.stream)
names = []
while (name := stream.next()) is not None:
    names.append(name)
    if name not in (".", ".."): os.unlink({folder:?} + "/" + name)
print(names, os.listdir({folder:?}))
libc.closedir(stream.stream)
"#
    );
    let text = Page::new("seeking", LISTING, DEFAULT).python(&code);
    assert_eq!(
        text,
        ". .. a\nb\nb c None\n.\n['.', '..', 'a', 'aa', 'b', 'c'] []"
    );
}

#[test]
fn a_flag_that_is_off_pins_nothing_of_its_kind() {
    let code = "import os, time; print(time.time() == 1789171200.1234567, os.urandom(8).hex())";
    let clock = Page::new("only-clock", CLOCK, DEFAULT);
    let (one, two) = (clock.python(code), clock.python(code));
    assert!(one.starts_with("True") && two.starts_with("True"));
    assert_ne!(one, two);
    let entropy = Page::new("only-entropy", ENTROPY, DEFAULT);
    let (one, two) = (entropy.python(code), entropy.python(code));
    assert!(one.starts_with("False"));
    assert_eq!(one, two);
}

#[test]
fn without_a_page_everything_is_real() {
    let mut page = Page::new("absent", CLOCK | ENTROPY | LISTING, DEFAULT);
    let code = "import os, time; time.sleep(0.01); print(int(time.time()), os.urandom(8).hex())";
    page.file = page.file.with_extension("gone");
    let absent = (page.python(code), page.python(code));
    assert_ne!(absent.0, absent.1);
    // Too short, and not begun to be written.
    for content in [vec![0_u8; 100], vec![0_u8; 4096]] {
        std::fs::write(&page.file, content).unwrap();
        assert!(!page.python(code).starts_with("1789171200"));
    }
    std::fs::remove_file(&page.file).unwrap();
}

fn tempfolder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir(&folder).unwrap();
    folder
}
