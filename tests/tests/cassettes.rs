//! Cassettes and their ledger, black box: every row of the protocol's table and every cheap way out, through a real
//! server, a real client and a real ssh-keygen. What the offline check says is held against what the server says.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tribunal_tests::client::report;
use tribunal_tests::{Case, Client, Ran, Repo, Server, Stage};

const WHO: &str = "maintainer@example.invalid";
const RECORD: &str = "cassettes/core.json";
const LEDGER: &str = "ci/cassette_ledger.json";
const TEST: &str = "tests/sealed/test_core.py::test_empty";
const BODY: &str = "{\"rate\": 1.25}\n";
const CLOCK: &str = "2026-09-12T00:00:00Z";
const LATER: &str = "2026-10-01T00:00:00Z";
const FEW: &str = "version = 1\n[runs]\nreruns = 1\nheld_out = 0\n";

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

fn record(clock: &str, seed: &str, test: &str) -> String {
    format!(
        "{{\n  \"schema\": \"cassette.v1\",\n  \"test\": \"{test}\",\n  \"clock\": \"{clock}\",\n  \"rng_seed\": {seed},\n  \"http\": [\n    \
         {{ \"method\": \"GET\", \"path\": \"/rates\", \"status\": 200, \"body_sha256\": \"{}\" }}\n  ]\n}}\n",
        sha256(BODY)
    )
}

/// A repository whose base has one accepted cassette, the server that knows it, and keys.
struct Desk {
    stage: Stage<'static>,
    keys: TempDir,
}

impl Desk {
    fn new(policy: &str) -> Self {
        let keys = tempfile::tempdir().unwrap();
        for name in ["maintainer", "agent"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
                .arg(keys.path().join(name))
                .status();
            assert!(made.unwrap().success());
        }
        let repo = Repo::small();
        repo.write("ci/tribunal.toml", policy);
        let public = fs::read_to_string(keys.path().join("maintainer.pub")).unwrap();
        repo.write(
            "ci/allowed_signers",
            format!("{WHO} namespaces=\"tribunal-cassette\" {public}"),
        );
        repo.write("tests/test_more.py", "def test_more():\n    pass\n");
        repo.commit("who accepts");
        let base = repo.head();
        repo.write(RECORD, record(CLOCK, "20260912", TEST));
        repo.write(&format!("cassettes/bodies/{}", sha256(BODY)), BODY);
        accept(
            repo.path(),
            &keys.path().join("maintainer"),
            RECORD,
            &base,
            "first recorded",
        )
        .expect_code(0);
        repo.commit("a cassette");
        Self {
            stage: Stage::of(Server::shared(), &repo),
            keys,
        }
    }

    fn repo(&self) -> &Repo {
        &self.stage.workspace
    }

    fn key(&self, name: &str) -> PathBuf {
        self.keys.path().join(name)
    }

    fn accept(&self, why: &str) {
        self.accept_at(RECORD, why);
    }

    fn accept_at(&self, path: &str, why: &str) {
        accept(
            self.repo().path(),
            &self.key("maintainer"),
            path,
            "origin/main",
            why,
        )
        .expect_code(0);
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.repo().path().join(path)).unwrap()
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.repo().path().join(path)).unwrap();
    }

    /// Change the first entry of the ledger by hand.
    fn entry(&self, change: impl FnOnce(&mut Value)) {
        let mut ledger: Value = serde_json::from_str(&self.read(LEDGER)).unwrap();
        change(&mut ledger["entries"][0]);
        self.repo().write(LEDGER, ledger.to_string());
    }

    /// The signature that the maintainer made for this content of the entry.
    fn signature(&self) -> String {
        let ledger: Value = serde_json::from_str(&self.read(LEDGER)).unwrap();
        ledger["entries"][0]["signature"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Begin anew at base, let `change` change it, have it scored by the agent, and hear both server and offline check.
    #[track_caller]
    fn row(&self, name: &str, change: impl FnOnce(&Self)) -> Scored {
        let repo = self.repo();
        repo.git(&["checkout", "-q", "-f", "--detach", "origin/main"]);
        repo.git(&["clean", "-qfdx"]);
        change(self);
        repo.commit(name);
        let ran = self.stage.score(&self.stage.agent(), name);
        let out = self.stage.out(name);
        assert!(out.is_dir(), "{name}: {}{}", ran.stdout, ran.stderr);
        let offline = Client::offline(repo.path()).run(&[
            "cassette",
            "check",
            "--base",
            "origin/main",
            "--json",
        ]);
        Scored {
            name: name.to_owned(),
            ran,
            report: report(&out),
            offline: serde_json::from_str(&offline.stdout).unwrap(),
        }
    }
}

fn accept(folder: &Path, key: &Path, path: &str, base: &str, why: &str) -> Ran {
    let key = key.to_str().unwrap();
    let args = [
        "cassette", "accept", path, "--base", base, "--as", WHO, "--key", key, "--why", why,
    ];
    Client::offline(folder).run(&args)
}

struct Scored {
    name: String,
    ran: Ran,
    report: Value,
    offline: Value,
}

impl Scored {
    fn words(&self) -> Vec<&str> {
        let verdicts = self.report["verdicts"].as_array().unwrap();
        verdicts
            .iter()
            .map(|verdict| verdict["word"].as_str().unwrap())
            .collect()
    }

    fn codes(&self) -> BTreeSet<String> {
        let verdicts = self.report["verdicts"].as_array().unwrap();
        let reasons = verdicts
            .iter()
            .flat_map(|verdict| verdict["reasons"].as_array().unwrap());
        reasons
            .map(|reason| reason["code"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Only `oracle_integrity` is FAIL, for these reasons, and the offline check gives the same.
    #[track_caller]
    fn drifts(self, codes: &[&str]) -> Self {
        assert_eq!(
            self.words(),
            ["PASS", "FAIL", "PASS"],
            "{}: {:#}",
            self.name,
            self.report["verdicts"]
        );
        self.ran.expect_code(1);
        let wanted: BTreeSet<String> = codes.iter().map(|code| (*code).to_owned()).collect();
        assert_eq!(
            self.codes(),
            wanted,
            "{}: {:#}",
            self.name,
            self.report["verdicts"]
        );
        let findings = self.offline["findings"].as_array().unwrap();
        let offline: BTreeSet<String> = findings
            .iter()
            .map(|f| f["code"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(offline, wanted, "{}, offline", self.name);
        self
    }

    #[track_caller]
    fn passes(self) -> Self {
        assert_eq!(
            self.words(),
            ["PASS", "PASS", "PASS"],
            "{}: {:#}",
            self.name,
            self.report["verdicts"]
        );
        self.ran.expect_code(0);
        assert_eq!(self.offline["findings"], json!([]), "{}", self.name);
        self
    }
}

#[test]
fn changes_and_what_answers_for_them() {
    let desk = Desk::new(FEW);
    let nothing = desk.row("nothing", |_| {}).passes();
    assert!(nothing.report.get("ledger").is_none());
    let replayed = nothing.report["inputs"]["cassettes"].clone();
    assert!(replayed.is_string());

    let moved = desk.row("moved-noted-accepted", |d| {
        d.repo().write(RECORD, record(LATER, "20260912", TEST));
        d.accept("the quarter ended");
    });
    let moved = moved.passes();
    let change = json!([{ "path": RECORD, "pin": "clock", "change": "moved", "why": "the quarter ended", "accepted_by": WHO }]);
    assert_eq!(moved.report["ledger"], change);
    assert_eq!(moved.offline["ledger"], change);
    assert_ne!(moved.report["inputs"]["cassettes"], replayed);
    let said = format!("cassette {RECORD}: clock moved: the quarter ended (accepted by {WHO})");
    assert!(moved.ran.stdout.contains(&said), "{}", moved.ran.stdout);
    let explained = desk
        .stage
        .agent()
        .run(&["explain", moved.report["score"].as_str().unwrap()]);
    assert!(explained.stdout.contains(&said), "{}", explained.stdout);

    desk.row("added-noted-accepted", |d| {
        d.repo().write(
            "cassettes/deep/more.json",
            record(CLOCK, "20260912", "tests/test_more.py::test_more"),
        );
        d.accept_at("cassettes/deep/more.json", "recorded");
    })
    .passes();

    desk.row("hash-changed", |d| {
        d.repo().write(RECORD, record(LATER, "20260912", TEST))
    })
    .drifts(&["cassette-drift"]);
    // With a valid signature over an entry that has the new hash, and no note.
    desk.row("no-note", |d| {
        let notes =
            serde_json::from_str::<Value>(&d.read(LEDGER)).unwrap()["entries"][0]["notes"].clone();
        d.repo().write(RECORD, record(LATER, "20260912", TEST));
        d.accept("x");
        d.entry(|e| e["notes"] = notes);
        resign(d);
    })
    .drifts(&["cassette-drift"]);
    desk.row("a-note-for-another-pin", |d| {
        d.repo().write(RECORD, record(LATER, "20260912", TEST));
        d.accept("x");
        d.entry(|e| {
            for note in e["notes"].as_array_mut().unwrap() {
                if note["change"] == "moved" {
                    note["pin"] = "rng_seed".into();
                }
            }
        });
        resign(d);
    })
    .drifts(&["cassette-drift"]);
    desk.row("body-swapped", |d| {
        d.repo().write(
            &format!("cassettes/bodies/{}", sha256(BODY)),
            "{\"rate\": 9}\n",
        )
    })
    .drifts(&["cassette-drift"]);
    desk.row("not-in-the-ledger", |d| {
        d.repo().write(
            "cassettes/more.json",
            record(CLOCK, "20260912", "tests/test_more.py::test_more"),
        )
    })
    .drifts(&["cassette-drift"]);
}

/// Sign the first entry as it stands, with the tool that people have.
fn resign(desk: &Desk) {
    let ledger: Value = serde_json::from_str(&desk.read(LEDGER)).unwrap();
    let entry = &ledger["entries"][0];
    let mut notes = entry["notes"].as_array().unwrap().clone();
    notes.sort_by_key(|note| {
        (
            note["pin"].to_string(),
            note["change"].to_string(),
            note["why"].to_string(),
        )
    });
    let notes: Vec<String> = notes
        .iter()
        .map(|note| {
            format!(
                "{{\"pin\":{},\"change\":{},\"why\":{}}}",
                note["pin"], note["change"], note["why"]
            )
        })
        .collect();
    let message = format!(
        "{{\"schema\":\"tribunal.cassette-acceptance.v1\",\"path\":{},\"sha256\":{},\"pins\":{},\"notes\":[{}]}}\n",
        entry["path"],
        entry["sha256"],
        entry["pins"],
        notes.join(",")
    );
    let signed = sign(&desk.key("maintainer"), "tribunal-cassette", &message);
    desk.entry(|entry| entry["signature"] = signed.into());
}

fn sign(key: &Path, namespace: &str, message: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("message");
    fs::write(&file, message).unwrap();
    let done = Command::new("ssh-keygen")
        .args(["-q", "-Y", "sign", "-n", namespace, "-f"])
        .arg(key)
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    fs::read_to_string(file.with_extension("sig")).unwrap()
}

#[test]
fn what_is_lost_stays_lost() {
    let desk = Desk::new(FEW);
    let lost = ["cassette-pin-lost"];
    desk.row("deleted", |d| d.remove(RECORD)).drifts(&lost);
    desk.row("deleted-with-its-entry", |d| {
        d.remove(RECORD);
        d.repo().write(LEDGER, "{\"entries\": []}\n");
    })
    .drifts(&lost);
    desk.row("moved-to-another-path", |d| {
        d.repo().git(&["mv", RECORD, "cassettes/renamed.json"]);
        d.repo().write(LEDGER, "{\"entries\": []}\n");
        d.accept_at("cassettes/renamed.json", "a better name");
    })
    .drifts(&lost);
    let without_clock = |d: &Desk| {
        let text =
            record(CLOCK, "20260912", TEST).replace(&format!("  \"clock\": \"{CLOCK}\",\n"), "");
        d.repo().write(RECORD, text);
        d.accept("the clock is not read any more");
    };
    desk.row("a-pin-dropped-and-a-note-says-why", without_clock)
        .drifts(&lost);
    let said = desk.row("a-note-of-a-pin-that-went", |d| {
        without_clock(d);
        d.entry(|e| {
            let note = json!({ "pin": "clock", "change": "removed", "why": "not read" });
            e["notes"].as_array_mut().unwrap().push(note);
        });
    });
    said.drifts(&["cassette-pin-lost", "cassette-invalid"]);
}

#[test]
fn whose_word_counts() {
    let desk = Desk::new(FEW);
    let unaccepted = ["cassette-unaccepted"];
    let moved = |d: &Desk| {
        d.repo().write(RECORD, record(LATER, "20260912", TEST));
        d.accept("x");
    };
    desk.row("a-draft", |d| {
        moved(d);
        d.entry(|e| {
            e["accepted_by"] = "".into();
            e["signature"] = "".into();
        });
    })
    .drifts(&unaccepted);
    desk.row("claimed-without-a-signature", |d| {
        moved(d);
        d.entry(|e| e["signature"] = "".into());
    })
    .drifts(&unaccepted);
    desk.row("with-the-agents-own-key", |d| {
        d.repo().write(RECORD, record(LATER, "20260912", TEST));
        accept(d.repo().path(), &d.key("agent"), RECORD, "origin/main", "x").expect_code(0);
    })
    .drifts(&unaccepted);
    desk.row("made-for-other-pins", |d| {
        moved(d);
        let pins =
            serde_json::from_str::<Value>(&d.read(LEDGER)).unwrap()["entries"][0]["pins"].clone();
        d.entry(|e| e["pins"] = json!(["clock"]));
        resign(d);
        d.entry(|e| e["pins"] = pins);
    })
    .drifts(&unaccepted);
    desk.row("made-for-another-path", |d| {
        moved(d);
        d.entry(|e| e["path"] = "cassettes/other.json".into());
        resign(d);
        d.entry(|e| e["path"] = RECORD.into());
    })
    .drifts(&unaccepted);
    desk.row("the-signature-of-the-old-entry", |d| {
        let old = d.signature();
        moved(d);
        d.entry(|e| e["signature"] = old.into());
    })
    .drifts(&unaccepted);
    // A signer that head adds bars the patch by itself, and is no signer either.
    let added = desk.row("with-a-signer-that-head-adds", |d| {
        let signers = d.read("ci/allowed_signers");
        let public = fs::read_to_string(d.key("agent.pub")).unwrap();
        d.repo()
            .write("ci/allowed_signers", format!("{signers}{WHO} {public}"));
        d.repo().write(RECORD, record(LATER, "20260912", TEST));
        accept(d.repo().path(), &d.key("agent"), RECORD, "origin/main", "x").expect_code(0);
    });
    assert_eq!(added.words(), ["NOT_RUN", "FAIL", "NOT_RUN"]);
    assert!(added.codes().contains("oracle-edit"), "{:?}", added.codes());
    assert_eq!(added.offline["findings"][0]["code"], "cassette-unaccepted");
    let out = desk.stage.out("human");
    let ran = desk.stage.maintainer().run(&[
        "score",
        "--change-set",
        "human",
        "--out",
        out.to_str().unwrap(),
    ]);
    ran.expect_code(1);
    let human = report(&out);
    assert_eq!(human["change_set"], "human");
    assert!(
        human["verdicts"]
            .to_string()
            .contains("cassette-unaccepted"),
        "{:#}",
        human["verdicts"]
    );
}

#[test]
fn what_is_no_cassette() {
    let desk = Desk::new(FEW);
    let invalid = ["cassette-invalid"];
    let twice = desk.row("duplicate-keys", |d| {
        let text = record(CLOCK, "20260912", TEST).replace(
            "  \"rng_seed\"",
            "  \"clock\": \"2026-09-13T00:00:00Z\",\n  \"rng_seed\"",
        );
        d.repo().write(RECORD, text);
    });
    let told = twice.drifts(&invalid).report["verdicts"].to_string();
    assert!(
        told.contains("line 5, column 3: `clock` stands twice"),
        "{told}"
    );
    desk.row("a-file-that-is-not-there", |d| {
        d.repo().write(
            "cassettes/gone.json",
            record(CLOCK, "20260912", "tests/sealed/test_gone.py::test_x"),
        );
        d.accept_at("cassettes/gone.json", "x");
    })
    .drifts(&invalid);
    // That a case of a sealed file is not there is known once base has collected its own.
    let gone = desk.row("a-case-that-is-not-there", |d| {
        d.repo().write(
            "cassettes/gone.json",
            record(CLOCK, "20260912", "tests/sealed/test_core.py::test_gone"),
        );
        d.accept_at("cassettes/gone.json", "x");
    });
    assert_eq!(
        gone.words(),
        ["PASS", "FAIL", "PASS"],
        "{:#}",
        gone.report["verdicts"]
    );
    let told = gone.report["verdicts"].to_string();
    assert!(
        told.contains("cassette-invalid") && told.contains("test_gone"),
        "{told}"
    );
    desk.row("two-for-one-test", |d| {
        d.repo()
            .write("cassettes/again.json", record(LATER, "20260912", TEST));
        d.accept_at("cassettes/again.json", "x");
    })
    .drifts(&invalid);
    let secret = desk.row("a-credential", |d| {
        let text = record(CLOCK, "20260912", TEST).replace(
            "\"status\": 200,",
            "\"status\": 200, \"headers\": { \"Set-Cookie\": \"sid=hunter2\" },",
        );
        d.repo().write(RECORD, text);
        d.accept("x");
    });
    let secret = secret.drifts(&["cassette-secret"]);
    assert!(
        !secret.report.to_string().contains("hunter2")
            && secret.report.to_string().contains("set-cookie")
    );
    desk.row("another-seed", |d| {
        d.repo().write(RECORD, record(CLOCK, "7", TEST));
        d.accept("x");
    })
    .drifts(&["seed-drift"]);
    let pointer = desk.row("a-pointer", |d| {
        d.repo().write(
            RECORD,
            "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        );
    });
    assert_eq!(pointer.words(), ["NOT_RUN", "FAIL", "NOT_RUN"]);
    assert!(pointer.codes().contains("lfs-pointer"));
}

/// Seeds at and beyond the limits of their consumers, each in turn; the policy's equals it on the lines that are right.
#[test]
fn f45_rng_seed_range() {
    let case = Case::named("field", "45");
    let lines: Vec<Value> =
        serde_json::from_slice(&fs::read(case.folder().join("seeds.json")).unwrap()).unwrap();
    assert_eq!(lines.len(), 9);
    // As the file spells them: 7.0 must not become 7 on its way.
    let text = fs::read_to_string(case.folder().join("seeds.json")).unwrap();
    let spelled: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"rng_seed\": "))
        .map(|seed| seed.trim_end_matches(','))
        .collect();
    assert_eq!(spelled.len(), lines.len());
    let rejecting = Desk::new(FEW);
    for (line, seed) in lines.iter().zip(spelled) {
        let name = format!("seed-{}", seed.replace(['"', '.', '-'], "_"));
        if line["right"] == "ok" {
            let desk = Desk::new_with_seed(seed);
            desk.row(&name, |d| {
                d.repo().write(
                    "cassettes/more.json",
                    record(CLOCK, seed, "tests/sealed/test_core.py::test_three"),
                );
                d.accept_at("cassettes/more.json", "x");
            })
            .passes();
            continue;
        }
        assert!(line["right"].as_str().unwrap().starts_with("reject"));
        let content = record(CLOCK, seed, "tests/sealed/test_core.py::test_three");
        let scored = rejecting.row(&name, |d| {
            d.repo().write("cassettes/more.json", &content);
            let mut ledger: Value = serde_json::from_str(&d.read(LEDGER)).unwrap();
            let mut entry = ledger["entries"][0].clone();
            entry["path"] = "cassettes/more.json".into();
            entry["sha256"] = sha256(&content).into();
            ledger["entries"].as_array_mut().unwrap().push(entry);
            d.repo().write(LEDGER, ledger.to_string());
        });
        let scored = scored.drifts(&["cassette-invalid"]);
        assert!(
            scored.report["verdicts"].to_string().contains("`rng_seed`"),
            "{seed}"
        );
    }
}

/// What a case with a cassette is to see whatever the draw is, and two cases that see the draw.
fn sealed(drawn: &str) -> String {
    format!(
        "import os\nimport random\nimport time\nfrom calc import total\n\n\n\
         def first():\n    return random.Random(20260912).random()\n\n\n\
         def test_empty():\n    assert total([]) == 0\n    assert time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()) == '{LATER}'\n    \
         assert random.random() == first()\n    assert os.urandom(8).hex() == '{drawn}'\n\n\n\
         def test_free_clock():\n    assert time.gmtime()[:3] == (2026, 9, 12)\n\n\n\
         def test_free_seed():\n    assert random.random() == first()\n"
    )
}

#[test]
fn held_out_draws_leave_what_a_cassette_fixes() {
    let desk = Desk::new("version = 1\n[runs]\nreruns = 2\nheld_out = 2\n");
    let repo = desk.repo();
    repo.write(RECORD, record(LATER, "20260912", TEST));
    desk.accept("another day");
    repo.write("tests/sealed/test_core.py", sealed("unknown"));
    repo.commit("cases that look");
    desk.stage.land();
    // What it draws is told by the failure, the same in both attempts.
    desk.stage.honest_patch("one");
    desk.stage
        .score(&desk.stage.agent(), "drawn")
        .expect_code(1);
    let said = report(&desk.stage.out("drawn"));
    let cases = said["cases"].as_array().unwrap();
    let case = cases.iter().find(|case| case["node"] == TEST).unwrap();
    assert_eq!(case["class"], "stable red", "{case:#}");
    let message = case["failure"]["message"].as_str().unwrap();
    let drawn = message.split('\'').nth(1).unwrap();
    assert!(
        drawn.len() == 16 && message.contains("unknown"),
        "{message}"
    );
    // The draws move both free cases, and nothing of the one whose record fixes what it sees.
    repo.git(&["checkout", "-q", "-B", "oracle", "origin/main"]);
    repo.write("tests/sealed/test_core.py", sealed(drawn));
    repo.commit("what it draws");
    desk.stage.land();
    desk.stage.honest_patch("two");
    desk.stage.score(&desk.stage.agent(), "held").expect_code(0);
    let said = report(&desk.stage.out("held"));
    assert_eq!(said["held_out"]["seen"], 2);
    let warnings = said["warnings"].as_array().unwrap().iter();
    let sensitive: BTreeSet<&str> = warnings
        .filter(|warning| warning["code"] == "pin-sensitive")
        .map(|warning| warning["subject"].as_str().unwrap())
        .collect();
    let free = ["clock", "seed"].map(|what| format!("tests/sealed/test_core.py::test_free_{what}"));
    let free: BTreeSet<&str> = free.iter().map(String::as_str).collect();
    assert_eq!(sensitive, free, "{:#}", said["warnings"]);
}

#[test]
fn an_address_instead_of_a_name_is_a_miss() {
    let desk = Desk::new(FEW);
    let repo = desk.repo();
    repo.write(
        "src/calc.py",
        "import urllib.request\n\n\ndef total(xs):\n    try:\n        urllib.request.urlopen('http://192.0.2.7:8080/rates', timeout=5)\n    \
         except OSError:\n        pass\n    s = 0\n    for x in xs:\n        s += x\n    return s\n",
    );
    repo.commit("asks an address");
    desk.stage
        .score(&desk.stage.agent(), "address")
        .expect_code(1);
    desk.stage.expect("address", ["FAIL", "PASS", "PASS"]);
    let said = report(&desk.stage.out("address"));
    let reasons = said["verdicts"][0]["reasons"].as_array().unwrap();
    let told: Vec<(&str, &str)> = reasons
        .iter()
        .map(|reason| {
            let text = |key: &str| reason[key].as_str().unwrap();
            (text("code"), text("subject"))
        })
        .collect();
    // The other cases ask it too, and have no cassette: to them there is only no network.
    assert_eq!(told, [("cassette-miss", TEST)], "{reasons:#?}");
    assert!(
        reasons[0].to_string().contains("address:192.0.2.7:8080"),
        "{reasons:#?}"
    );
}

impl Desk {
    /// A base whose policy has this seed, its cassette too.
    fn new_with_seed(seed: &str) -> Self {
        let desk = Self::new(FEW);
        desk.repo()
            .write("ci/tribunal.toml", format!("{FEW}[pins]\nseed = {seed}\n"));
        desk.repo().write(RECORD, record(CLOCK, seed, TEST));
        desk.accept("another seed");
        desk.repo().commit("another seed");
        desk.stage.land();
        desk
    }
}
