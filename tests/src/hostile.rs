//! A repository whose candidates write what browsers and terminals would do something with, wherever a candidate can write:
//! case ids, messages, output, commit subjects, paths, leases.

use crate::{Repo, Server, Stage};
use std::fmt::Write as _;

/// What is written. Each holds its marker, so that a test knows what it sees, and that it is seen at all.
pub const CORPUS: [&str; 16] = [
    "<script>alert('plant-0-')</script>",
    "\"><img src=x onerror=alert('plant-1-')>",
    "' onmouseover='alert(`plant-2-`)' x='",
    "</pre></bdi></td></table></main><script>alert('plant-3-')</script>",
    "javascript:xss('plant-4-')",
    "<svg onload=alert('plant-5-')>",
    "{{plant-6-}}${plant-6-}<%= plant %>",
    "plant-7-\u{202e}</title>\u{2066}\u{61c}\u{1b}[31m",
    "<iframe srcdoc=\"<script>parent.alert('plant-8-')</script>\"></iframe>",
    "<a onclick=alert('plant-9-') href=javascript:xss()>x</a>",
    "--><!--plant-10---><style>*{display:none}</style>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert('plant-11-')>",
    "&lt;script&gt;&#60;plant-12-&#x3c;",
    "plant-13-\" autofocus onfocus=alert(13) tabindex=1 x=\"",
    "<base href=https://evil.example/plant-14-><meta http-equiv=refresh content=0>",
    "<object data=https://evil.example/plant-15-><embed src=x><template>",
];

/// The names under which [`scored`] leaves verdict files.
pub const SCORES: [&str; 2] = ["hostile", "honest"];

/// What stands in line `n` of the corpus and nowhere else.
#[must_use]
pub fn marker(n: usize) -> String {
    format!("plant-{n}-")
}

fn literal() -> String {
    let mut text = String::from("CORPUS = [\n");
    for line in CORPUS {
        let json = serde_json::to_string(line).unwrap();
        let _infallible = writeln!(text, "    {json},");
    }
    text.push_str("]\n");
    text
}

/// Base: a case for each line under its name, a coin that nothing pins, leases by the corpus.
fn base() -> Repo {
    let repo = Repo::small();
    repo.write("src/speaks.py", "def says(text):\n    return text\n");
    repo.write(
        "tests/sealed/test_speaks.py",
        format!(
            "import pytest\nfrom speaks import says\n\n{}\n\n@pytest.mark.parametrize(\"text\", CORPUS, ids=CORPUS)\ndef test_says(text):\n    print(text)\n    assert says(text) == text, text\n",
            literal()
        ),
    );
    repo.write(
        "tests/sealed/MANIFEST.txt",
        "tests/sealed/test_core.py\ntests/sealed/test_speaks.py\n",
    );
    let leases: Vec<_> = CORPUS
        .iter()
        .enumerate()
        .map(|(n, line)| {
            serde_json::json!({
                "qualname": format!("test_gone.test_{n}"),
                "bytecode_hash": format!("v2:cp313:{}", "0".repeat(64)),
                "failure_signature": "AssertionError: x",
                "expires_at": 1_900_000_000 + n,
                "owner": format!("owner {line}"),
                "reason": line,
            })
        })
        .collect();
    let leases = serde_json::json!({ "leases": leases });
    repo.write("ci/flake_leases.json", leases.to_string());
    repo.write(
        "ci/tribunal.toml",
        "version = 1\n[runs]\nreruns = 7\nheld_out = 1\n",
    );
    repo.commit("base");
    repo
}

/// Registered, and cloned.
#[must_use]
pub fn stage(server: &Server) -> Stage<'_> {
    Stage::of(server, &base())
}

/// Two scores: one that says the corpus wherever code can, and one that holds with a subject that does.
pub fn scored(stage: &Stage<'_>) {
    let work = &stage.workspace;
    work.write(
        "src/speaks.py",
        format!(
            "import os\n\n{}\n\ndef says(text):\n    for line in CORPUS:\n        os.write(1, line.encode()); os.write(2, line.encode())\n    raise ValueError(text + '\\n' + '\\n'.join(CORPUS))\n",
            literal()
        ),
    );
    work.write(
        "tests/test_coin.py",
        format!(
            "import pytest\n\n{}\n\n@pytest.mark.parametrize(\"text\", CORPUS[:2], ids=CORPUS[:2])\ndef test_coin(text):\n    with open('/dev/urandom', 'rb') as device:\n        assert device.read(1)[0] < 128, text\n",
            literal()
        ),
    );
    work.write("notes/<img src=x onerror=alert(1)>.txt", "x\n");
    work.commit(
        "subject <img src=x onerror=alert(1)>\u{202e}\u{1b}[31m\n\n<script>alert(2)</script>",
    );
    stage.score(&stage.agent(), SCORES[0]);
    work.git(&["reset", "-q", "--hard", "origin/main"]);
    work.write(
        "src/speaks.py",
        "# honest\ndef says(text):\n    return text\n",
    );
    work.commit("subject \"><script>alert(3)</script>");
    stage.score(&stage.agent(), SCORES[1]).expect_code(0);
}

/// Everything of this server's that must never be told.
#[must_use]
pub fn secrets(server: &Server, stage: &Stage<'_>, operator: &str) -> Vec<String> {
    let key = std::fs::read_to_string(server.data().join("keys/current")).unwrap();
    let lines = key.lines().filter(|line| !line.starts_with("-----"));
    let mut secrets: Vec<String> = lines.map(str::to_owned).collect();
    assert!(!secrets.is_empty());
    let held_out = std::fs::read(server.data().join("held_out.secret")).unwrap();
    secrets.push(String::from_utf8_lossy(&held_out).trim().to_owned());
    let registered = &stage.registered;
    for token in [
        &registered.agent,
        &registered.ci,
        &registered.maintainer,
        &operator.to_owned(),
    ] {
        let (_, secret) = token.rsplit_once('_').unwrap();
        assert!(
            secret.len() > 20,
            "a token looks otherwise than was thought"
        );
        secrets.push(secret.to_owned());
    }
    secrets
}
