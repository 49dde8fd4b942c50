//! A hostile product in the real container tries to get out: every way ends in the error that its row names.
//!
//! The ways are in `src/sandbox/escapes/escape/`, the rows in `test_escapes.py` beside it. They are tried from the
//! process of a shared part and from the product process of a split one.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::outcome::End;
use tribunal_server::sandbox::RunFacts;
use tribunal_tests::sandbox::docker::{Engine, over};
use tribunal_tests::sandbox::{Order, Subject, told};

const PRODUCT: [(&str, &str); 8] = [
    (
        "src/escape/__init__.py",
        include_str!("../src/sandbox/escapes/escape/__init__.py"),
    ),
    (
        "src/escape/identity.py",
        include_str!("../src/sandbox/escapes/escape/identity.py"),
    ),
    (
        "src/escape/machine.py",
        include_str!("../src/sandbox/escapes/escape/machine.py"),
    ),
    (
        "src/escape/places.py",
        include_str!("../src/sandbox/escapes/escape/places.py"),
    ),
    (
        "src/escape/processes.py",
        include_str!("../src/sandbox/escapes/escape/processes.py"),
    ),
    (
        "src/escape/sockets.py",
        include_str!("../src/sandbox/escapes/escape/sockets.py"),
    ),
    (
        "src/escape/traces.py",
        include_str!("../src/sandbox/escapes/escape/traces.py"),
    ),
    (
        "src/escape/ways.py",
        include_str!("../src/sandbox/escapes/escape/ways.py"),
    ),
];
const ROWS: &str = include_str!("../src/sandbox/escapes/test_escapes.py");
const FILE: &str = "tests/sealed/test_escapes.py";

/// How the sealed file runs: with the product beside it, or in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Split,
    Shared,
}

impl Mode {
    const fn word(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Shared => "shared",
        }
    }
}

async fn tried(engine: &Arc<Engine>, mode: Mode) -> RunFacts {
    let subject: Arc<dyn Subject> = Arc::clone(engine) as Arc<dyn Subject>;
    let mut order = Order::of(&subject, &[]).times(2);
    let rows = format!("MODE = \"{}\"\n{ROWS}", mode.word());
    order.sealed.insert(FILE.to_owned(), rows);
    for (path, text) in PRODUCT {
        order.src.insert(path.to_owned(), text.to_owned());
    }
    order.policy.runner.shared = match mode {
        Mode::Split => Vec::new(),
        Mode::Shared => vec![FILE.parse().unwrap()],
    };
    run(engine, &order).await
}

async fn run(engine: &Engine, order: &Order) -> RunFacts {
    let (events, mut heard) = mpsc::channel(64);
    let listening = tokio::spawn(async move { while heard.recv().await.is_some() {} });
    let facts = engine
        .sandbox()
        .run(
            order.sealed().await.unwrap(),
            events,
            CancellationToken::new(),
        )
        .await;
    listening.await.unwrap();
    facts.unwrap()
}

/// Every row holds in both attempts: the second finds nothing of what the first left.
fn nothing_escaped(facts: &RunFacts) {
    assert_eq!(facts.attempts.len(), 2);
    for attempt in &facts.attempts {
        let red: Vec<String> = told(attempt)
            .into_iter()
            .filter(|told| !told.ends_with(": passed"))
            .collect();
        assert!(
            attempt.collection_errors.is_empty(),
            "{:?}",
            attempt.collection_errors
        );
        assert!(red.is_empty(), "{} red:\n{}", red.len(), red.join("\n"));
        assert_eq!(attempt.end.end, End::Finished, "{:?}", attempt.end);
        assert!(attempt.cases.len() > 250, "{} rows", attempt.cases.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_shared_part() {
    over(Engine::new().await.unwrap(), |engine| async move {
        nothing_escaped(&tried(&engine, Mode::Shared).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_split_part() {
    over(Engine::new().await.unwrap(), |engine| async move {
        nothing_escaped(&tried(&engine, Mode::Split).await);
    })
    .await;
}

/// Ways to break the conversation, the room or the count of cases instead of leaving. `wrong()` is the wrong answer.
const DISTURBANCES: [(&str, &str); 13] = [
    (
        "floods every socket and pipe",
        "import os, threading\ndef flood(fd):\n    while True:\n        try:\n            os.write(fd, os.urandom(4096))\n        except OSError:\n            return\nfor fd in range(3, 64):\n    threading.Thread(target=flood, args=(fd,), daemon=True).start()\n",
    ),
    (
        "announces a frame without end",
        "import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b'\\xff' * 16)\n    except OSError:\n        pass\n",
    ),
    (
        "closes everything",
        "import os\ndef answer():\n    os.closerange(0, 1024)\n    return wrong()\n",
    ),
    (
        "never answers",
        "import time\ndef answer():\n    time.sleep(1e6)\n",
    ),
    (
        "stops itself",
        "import os, signal\ndef answer():\n    os.kill(os.getpid(), signal.SIGSTOP)\n    return wrong()\n",
    ),
    (
        "kills itself",
        "import os, signal\ndef answer():\n    os.kill(os.getpid(), signal.SIGKILL)\n",
    ),
    (
        "leaves with 0",
        "import os\ndef answer():\n    os._exit(0)\n",
    ),
    (
        "takes all processes",
        "import os, signal\ntry:\n    while True:\n        if os.fork() == 0:\n            signal.pause()\nexcept OSError:\n    pass\n",
    ),
    (
        "takes all descriptors",
        "import os\nkept = []\ntry:\n    while True:\n        kept.append(os.pipe())\nexcept OSError:\n    pass\n",
    ),
    (
        "fills what may be written",
        "for place in ('/tmp', '/dev/shm', '/home/attempt'):\n    try:\n        with open(f'{place}/full', 'wb', buffering=0) as file:\n            while file.write(bytes(1 << 20)) == 1 << 20:\n                pass\n    except OSError:\n        pass\n",
    ),
    (
        "takes all memory",
        "def answer():\n    return [bytearray(1 << 24) for _ in range(10**6)]\n",
    ),
    ("recurses", "def answer():\n    return answer()\n"),
    (
        "hands its socket to a daemon and leaves",
        "import os, time\ndef answer():\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(1e6)\n    os._exit(0)\n",
    ),
];

const JUDGE: &str = "from app import answer\n\n\ndef test_first(tmp_path):\n    (tmp_path / 'x').write_text('x')\n    assert answer() == 42\n\n\ndef test_second():\n    assert answer() == 42\n";

/// No disturbance makes a case pass, none hangs, and the room is good for the next attempt.
async fn disturbed(engine: &Arc<Engine>, mode: Mode) {
    let file = "tests/sealed/test_judge.py";
    for (what, code) in DISTURBANCES {
        let subject: Arc<dyn Subject> = Arc::clone(engine) as Arc<dyn Subject>;
        let mut order = Order::of(&subject, &[]).times(2);
        order.sealed.insert(file.to_owned(), JUDGE.to_owned());
        let product = format!(
            "def wrong():\n    return 41\n\n\ndef answer():\n    return wrong()\n\n\n{code}"
        );
        order.src.insert("src/app.py".to_owned(), product);
        order.policy.runs.case_timeout_ms = 4_000;
        order.policy.limits.pids = 64;
        if mode == Mode::Shared {
            order.policy.runner.shared = vec![file.parse().unwrap()];
        }
        let begun = std::time::Instant::now();
        let facts = run(engine, &order).await;
        assert_eq!(facts.attempts.len(), 2, "{what}");
        for attempt in &facts.attempts {
            let told = told(attempt);
            let passed = told.iter().any(|told| told.ends_with(": passed"));
            assert!(!passed, "{what}: {told:?}");
            let red = !told.is_empty() || attempt.end.end != End::Finished;
            assert!(
                red || !attempt.collection_errors.is_empty(),
                "{what}: {attempt:?}"
            );
        }
        let took = begun.elapsed();
        assert!(
            took < std::time::Duration::from_secs(60),
            "{what} took {took:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn disturbances_of_a_shared_part() {
    over(Engine::new().await.unwrap(), |engine| async move {
        disturbed(&engine, Mode::Shared).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn disturbances_of_a_split_part() {
    over(Engine::new().await.unwrap(), |engine| async move {
        disturbed(&engine, Mode::Split).await;
    })
    .await;
}
