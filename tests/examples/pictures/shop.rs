//! A small shop's repository with a history worth looking at: an honest patch, one that breaks a property, one that edits the
//! oracle, one with a test that flips a coin; leases; a second repository beside it.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use tribunal_tests::{Browser, Repo, Server, Stage, client, until};

/// What there is to look at.
pub(crate) struct History {
    blocked: String,
}

impl History {
    /// `NAME=PATH` for each picture, after the folder.
    pub(crate) fn views(&self, out: &str) -> Vec<String> {
        let of = |name: &str, path: &str| format!("{name}={path}");
        vec![
            out.to_owned(),
            of("overview", "/"),
            of("scores", "/repositories/shop"),
            of("blocked", &self.blocked),
            of("leases", "/repositories/shop/leases"),
            of("flaky", "/repositories/shop/flaky"),
            of("oracle", "/repositories/shop/oracle"),
        ]
    }
}

const PRICES: &str = "\
RATES = {'standard': 20, 'reduced': 5, 'zero': 0}


def with_tax(cents, rate='standard'):
    return cents + cents * RATES[rate] // 100


def discounted(cents, percent):
    if not 0 <= percent <= 100:
        raise ValueError(f'no discount of {percent} percent')
    return cents - cents * percent // 100


def total(lines):
    return sum(with_tax(cents, rate) * count for cents, rate, count in lines)
";

const TEST_PRICES: &str = "\
import pytest
from prices import discounted, total, with_tax


@pytest.mark.parametrize('cents, rate, wanted', [(1000, 'standard', 1200), (1000, 'reduced', 1050), (1000, 'zero', 1000), (0, 'standard', 0)])
def test_tax(cents, rate, wanted):
    assert with_tax(cents, rate) == wanted


@pytest.mark.parametrize('percent', [0, 10, 50, 100])
def test_a_discount_never_adds(percent):
    assert 0 <= discounted(1999, percent) <= 1999


@pytest.mark.parametrize('percent', [-1, 101])
def test_no_such_discount(percent):
    with pytest.raises(ValueError):
        discounted(1000, percent)


def test_an_empty_cart_costs_nothing():
    assert total([]) == 0


def test_a_cart_is_the_sum_of_its_lines():
    assert total([(1000, 'standard', 2), (500, 'reduced', 1)]) == 2925
";

const COIN: &str = "\
import os
from prices import total


def test_totals_do_not_depend_on_the_order():
    lines = [(1000, 'standard', 1), (250, 'reduced', 3)]
    assert total(lines) == total(lines[::-1])


def test_ids_are_drawn_evenly():
    with open('/dev/urandom', 'rb') as device:
        assert device.read(1)[0] < 160, 'an id of the upper range'
";

fn base() -> Repo {
    let repo = Repo::empty();
    repo.write("src/prices.py", PRICES);
    repo.write("tests/sealed/test_prices.py", TEST_PRICES);
    repo.write("tests/sealed/MANIFEST.txt", "tests/sealed/test_prices.py\n");
    repo.write("ci/tribunal.toml", "version = 1\n[runs]\nreruns = 9\n");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let lease = |case: &str, days: u64, owner: &str, reason: &str| {
        serde_json::json!({
            "qualname": case,
            "bytecode_hash": format!("v2:cp313:{}", "0".repeat(64)),
            "failure_signature": "TimeoutError: no answer",
            "expires_at": now + days * 86_400 + 5_000,
            "owner": owner,
            "reason": reason,
        })
    };
    let leases = serde_json::json!({ "leases": [
        lease("test_rates.test_rates_of_today", 3, "ines@example.com", "the bank's rates are moved to another host"),
        lease("test_export.test_export_of_a_large_cart", 12, "tom@example.com", "waits for the new exporter"),
        lease("test_mail.test_receipt_is_sent", 26, "ines@example.com", "the mail gateway drops every tenth message"),
    ] });
    repo.write("ci/flake_leases.json", leases.to_string());
    repo.commit("The shop");
    repo
}

/// A history of a few minutes is made one of days: each score is moved back, the older the further.
fn age(server: &Server) {
    const CODE: &str = "
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
(name, sql), = base.execute(\"select name, sql from sqlite_master where name = 'scores_end_once'\")
base.execute(f'drop trigger {name}')
last = base.execute('select max(number) from scores').fetchone()[0]
for (number,) in base.execute('select number from scores').fetchall():
    back = (last - number) * 33_000 + 900
    base.execute('update scores set created = created - ?, started = started - ?, ended = ended - ? where number = ?', (back, back, back, number))
base.execute(sql)
base.commit()
";
    server.shutdown();
    let status = Command::new("python3")
        .args(["-c", CODE])
        .arg(server.data().join("tribunal.db"))
        .status()
        .unwrap();
    assert!(status.success());
    server.start();
}

/// Draw while a score of the shop runs.
pub(crate) fn while_one_runs(server: &Server, operator: &str, draw: impl FnOnce(&str)) {
    let slow = Repo::slow(3.0);
    let stage = Stage::called(server, "crawler", &slow);
    stage.honest_patch("Ask politely, and once");
    std::thread::scope(|scope| {
        let scoring = scope.spawn(|| stage.score(&stage.agent(), "slow").code);
        let browser = Browser::bearer(server, operator);
        let mut path = None;
        until("it is half way", || {
            let list = browser.get("/repositories/crawler").body;
            path = list.find("data-open=\"").map(|at| {
                let id = &list[at + 11..at + 43];
                format!("/repositories/crawler/scores/{id}")
            });
            list.contains("attempt 4 of") || list.contains("attempt 5 of")
        });
        draw(&path.unwrap());
        assert_eq!(scoring.join().unwrap(), 0);
    });
}

/// Scored, all of it.
pub(crate) fn history(server: &Server) -> History {
    let stage = Stage::called(server, "shop", &base());
    let beside = Stage::called(server, "ledger", &Repo::small());
    beside.honest_patch("Sum without a generator");
    beside.score(&beside.agent(), "one").expect_code(0);
    let work = &stage.workspace;
    let patch = |subject: &str, out: &str, files: &[(&str, String)]| {
        work.git(&["reset", "-q", "--hard", "origin/main"]);
        for (path, text) in files {
            work.write(path, text);
        }
        work.commit(subject);
        stage.score(&stage.agent(), out);
        let report = client::report(&stage.out(out));
        let name = report["score"].as_str().unwrap().to_owned();
        format!("/{name}")
    };
    let src = |from: &str, to: &str| ("src/prices.py", PRICES.replace(from, to));
    patch(
        "Round discounts down",
        "edit",
        &[
            src("// 100\n\n\ndef total", "// 100 or 0\n\n\ndef total"),
            (
                "tests/sealed/test_prices.py",
                TEST_PRICES.replace("== 2925", "== 2924"),
            ),
        ],
    );
    let coin = |note: &str| {
        let files = [
            src("RATES =", &format!("# {note}\nRATES =")),
            ("tests/test_ids.py", COIN.to_owned()),
        ];
        patch(&format!("Ids by the kernel's device: {note}"), note, &files);
    };
    for note in ["first", "second", "third"] {
        coin(note);
    }
    let said = [("src/prices.py", format!("# Rates in per cent.\n{PRICES}"))];
    patch("Say what the rates are", "merged", &said);
    coin("fourth");
    let blocked = patch(
        "Discounts may be negative",
        "blocked",
        &[
            src("0 <= percent <= 100", "-5 <= percent <= 101"),
            ("tests/test_ids.py", COIN.to_owned()),
            ("docs/discounts.md", "Discounts\n".to_owned()),
        ],
    );
    age(server);
    History { blocked }
}
