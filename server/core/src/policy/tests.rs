//! The policy as tables: what is refused and with which words, what is read, and that text and value are one.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its table up should stop"
)]

use super::*;
use crate::id::Seed;
use proptest::collection::vec;
use proptest::prelude::*;

fn mistakes(text: &str) -> Vec<String> {
    match Policy::parse(text.as_bytes()) {
        Ok(_) => Vec::new(),
        Err(error) => error.mistakes.iter().map(Mistake::to_string).collect(),
    }
}

#[test]
fn the_documented_defaults_are_the_defaults() {
    let documented = r#"
version = 1
[paths]
src        = ["src/"]
sealed     = ["tests/sealed/", "fixtures/sealed/", "properties/", "ci/"]
proposed   = ["tests/proposed/"]
tests      = ["tests/"]
cassettes  = "cassettes/"
manifest   = "tests/sealed/MANIFEST.txt"
leases     = "ci/flake_leases.json"
ledger     = "ci/cassette_ledger.json"
protect    = []
[pins]
seed              = 20260912
seed_env          = ["TRIBUNAL_SEED"]
clock             = "2026-09-12T00:00:00Z"
timezone          = "UTC"
hash_seed         = 0
source_date_epoch = 1700000000
[runs]
reruns            = 7
held_out          = 2
pin_sensitive     = []
attempt_timeout   = "120s"
case_timeout      = "30s"
when_behind       = "merge"
forbid_marks      = []
require_strong_digest = false
[runner]
kind     = "pytest"
image    = "tribunal/python:3.13"
pythonpath = [".", "src"]
preload  = "auto"
shared   = []
[limits]
memory = "1GiB"
pids   = 256
cpus   = 1
tmp    = "256MiB"
tmp_exec = false
output = "8MiB"
src_files = 20000
src_bytes = "256MiB"
[feedback]
agent = "full"
"#;
    assert_eq!(Policy::parse(documented.as_bytes()), Ok(Policy::default()));
    assert_eq!(Policy::parse(b""), Ok(Policy::default()));
}

/// Name of the row, the policy, and what its one mistake must say.
#[rustfmt::skip]
const REFUSED: &[(&str, &str, &[&str])] = &[
    ("no_value", "x = ", &["the file is not TOML", "line 1"]),
    ("broken_toml_names_its_line", "version = 1\n[pins\n", &["not TOML", "line 2"]),
    ("a_key_twice", "version = 1\nversion = 1\n", &["not TOML", "line 2"]),
    ("another_version", "version = 2", &["version must be", "from 1 to 1", "got 2"]),
    ("version_as_text", "version = \"1\"", &["version must be", "the text \"1\""]),
    ("unknown_table", "[run]\nreruns = 7", &["run is no key here", "runs"]),
    ("unknown_key", "[runs]\nreruns = 7\nretries = 3", &["runs.retries is no key here", "reruns"]),
    ("unknown_key_with_control_characters", "[runs]\n\"a\\u001bb\" = 3", &["runs.a\\u{1b}b"]),
    ("table_where_a_table_is_not", "pins = 3", &["pins must be a table, got 3"]),
    // Seeds: the field case's list, and its relatives.
    ("seed_2_to_the_32", "[pins]\nseed = 4294967296", &["pins.seed must be an integer from 0 to 4294967295", "got 4294967296"]),
    ("seed_negative", "[pins]\nseed = -1", &["pins.seed", "got -1"]),
    ("seed_beyond_a_double", "[pins]\nseed = 9007199254740993", &["pins.seed", "got 9007199254740993"]),
    ("seed_float", "[pins]\nseed = 7.0", &["pins.seed", "the float 7.0"]),
    ("seed_boolean", "[pins]\nseed = true", &["pins.seed", "the boolean true"]),
    ("seed_text", "[pins]\nseed = \"7\"", &["pins.seed", "the text \"7\""]),
    ("seed_nan", "[pins]\nseed = nan", &["pins.seed", "the float NaN"]),
    ("seed_list", "[pins]\nseed = [7]", &["pins.seed", "a list"]),
    ("seed_beyond_toml", "[pins]\nseed = 18446744073709551616", &["not TOML", "line 2"]),
    ("hash_seed_too_large", "[pins]\nhash_seed = 4294967296", &["pins.hash_seed", "4294967295"]),
    ("hash_seed_random", "[pins]\nhash_seed = \"random\"", &["pins.hash_seed", "the text \"random\""]),
    ("epoch_negative", "[pins]\nsource_date_epoch = -1", &["pins.source_date_epoch", "got -1"]),
    ("epoch_past_year_9999", "[pins]\nsource_date_epoch = 253402300800", &["pins.source_date_epoch"]),
    ("clock_date_only", "[pins]\nclock = \"2026-09-12\"", &["pins.clock", "with its offset", "2026-09-12"]),
    ("clock_local", "[pins]\nclock = \"2026-09-12T00:00:00\"", &["pins.clock", "with its offset"]),
    ("clock_toml_local", "[pins]\nclock = 2026-09-12T00:00:00", &["pins.clock", "with its offset"]),
    ("clock_number", "[pins]\nclock = 1700000000", &["pins.clock", "got 1700000000"]),
    ("clock_before_archives", "[pins]\nclock = \"1979-12-31T23:59:59Z\"", &["pins.clock", "from 1980 to 2200"]),
    ("clock_past_2200", "[pins]\nclock = \"2201-01-01T00:00:00Z\"", &["pins.clock", "from 1980 to 2200"]),
    ("seed_env_not_a_name", "[pins]\nseed_env = [\"A-B\"]", &["pins.seed_env[0]", "environment variable"]),
    ("seed_env_steers_the_runner", "[pins]\nseed_env = [\"PYTEST_ADDOPTS\"]", &["pins.seed_env[0]", "not the runner's own"]),
    ("seed_env_is_preload", "[pins]\nseed_env = [\"LD_PRELOAD\"]", &["pins.seed_env[0]"]),
    ("seed_env_one_text", "[pins]\nseed_env = \"SEED\"", &["pins.seed_env must be a list"]),
    ("zone_leaves_its_folder", "[pins]\ntimezone = \"../etc/passwd\"", &["pins.timezone"]),
    // Runs.
    ("no_reruns", "[runs]\nreruns = 0", &["runs.reruns must be an integer from 1 to 100, got 0"]),
    ("too_many_reruns", "[runs]\nreruns = 101", &["runs.reruns"]),
    ("too_many_held_out", "[runs]\nheld_out = 21", &["runs.held_out must be an integer from 0 to 20"]),
    ("duration_without_unit", "[runs]\ncase_timeout = \"30\"", &["runs.case_timeout must be a duration", "the text \"30\""]),
    ("duration_as_number", "[runs]\ncase_timeout = 30", &["runs.case_timeout", "got 30"]),
    ("duration_with_fraction", "[runs]\ncase_timeout = \"1.5s\"", &["runs.case_timeout"]),
    ("duration_with_space", "[runs]\ncase_timeout = \"30 s\"", &["runs.case_timeout"]),
    ("duration_signed", "[runs]\ncase_timeout = \"+30s\"", &["runs.case_timeout"]),
    ("duration_zero", "[runs]\nattempt_timeout = \"0s\"", &["runs.attempt_timeout", "from 100ms to 3600s"]),
    ("duration_overflows", "[runs]\nattempt_timeout = \"99999999999999999999h\"", &["runs.attempt_timeout"]),
    ("when_behind_unknown", "[runs]\nwhen_behind = \"rebase\"", &["runs.when_behind must be \"merge\" or \"refuse\""]),
    ("mark_with_a_dot", "[runs]\nforbid_marks = [\"pytest.mark.slow\"]", &["runs.forbid_marks[0]", "name of a mark"]),
    ("boolean_as_text", "[runs]\nrequire_strong_digest = \"yes\"", &["runs.require_strong_digest must be true or false"]),
    ("node_id_twice", "[runs]\npin_sensitive = [\"a::b\", \"a::b\"]", &["runs.pin_sensitive[1] stands there twice"]),
    ("empty_node_id", "[runs]\npin_sensitive = [\"\"]", &["runs.pin_sensitive[0] must be a node id"]),
    ("path_entry_lacks_its_number", "[[runs.path]]\nprefix = \"tests/slow/\"", &["runs.path[0].reruns is missing"]),
    ("path_entry_lacks_its_prefix", "[[runs.path]]\nreruns = 3", &["runs.path[0].prefix is missing"]),
    ("path_entry_unknown_key", "[[runs.path]]\nprefix = \"t/\"\nreruns = 3\nretry = 1", &["runs.path[0].retry is no key"]),
    ("path_is_one_table", "[runs.path]\nprefix = \"t/\"\nreruns = 3", &["runs.path must be a list of tables"]),
    // Runner, limits, feedback.
    ("runner_kind", "[runner]\nkind = \"nose\"", &["runner.kind must be \"pytest\""]),
    ("image_with_option", "[runner]\nimage = \"--privileged\"", &["runner.image"]),
    ("pythonpath_absolute", "[runner]\npythonpath = [\"/usr/lib\"]", &["runner.pythonpath[0]", "/usr/lib"]),
    ("pythonpath_upwards", "[runner]\npythonpath = [\"..\"]", &["runner.pythonpath[0]"]),
    ("pythonpath_twice_by_slash", "[runner]\npythonpath = [\"src\", \"src/\"]", &["runner.pythonpath[1] stands there twice"]),
    ("preload", "[runner]\npreload = true", &["runner.preload must be \"auto\" or \"none\""]),
    ("shared_folder", "[runner]\nshared = [\"tests/sealed/\"]", &["runner.shared[0] must be the exact path"]),
    ("size_decimal_unit", "[limits]\nmemory = \"1GB\"", &["limits.memory must be a size", "the text \"1GB\""]),
    ("size_as_number", "[limits]\nmemory = 1073741824", &["limits.memory must be a size"]),
    ("size_too_small", "[limits]\nmemory = \"1MiB\"", &["limits.memory", "from 64MiB to 256GiB"]),
    ("size_overflows", "[limits]\ntmp = \"99999999999999GiB\"", &["limits.tmp"]),
    ("pids_zero", "[limits]\npids = 0", &["limits.pids must be an integer from 16"]),
    ("cpus_fraction", "[limits]\ncpus = 0.5", &["limits.cpus", "the float 0.5"]),
    ("feedback_level", "[feedback]\nagent = \"none\"", &["feedback.agent must be \"verdict\", \"names\" or \"full\""]),
    // Paths.
    ("no_src", "[paths]\nsrc = []", &["paths.src must name at least one path"]),
    ("absolute", "[paths]\nsrc = [\"/src/\"]", &["paths.src[0]", "relative"]),
    ("upwards", "[paths]\nsrc = [\"src/../ci/\"]", &["paths.src[0]"]),
    ("dot", "[paths]\nsrc = [\"./src/\"]", &["paths.src[0]"]),
    ("the_whole_tree", "[paths]\nsrc = [\"/\"]", &["paths.src[0]"]),
    ("empty", "[paths]\nsrc = [\"\"]", &["paths.src[0]"]),
    ("double_slash", "[paths]\nsrc = [\"src//\"]", &["paths.src[0]"]),
    ("backslash", "[paths]\nsrc = ['src\\']", &["paths.src[0]"]),
    ("pattern", "[paths]\nprotect = [\"tools/**\"]", &["paths.protect[0]", "patterns"]),
    ("git_folder", "[paths]\nsrc = [\".Git/\"]", &["paths.src[0]", ".git"]),
    ("src_is_sealed", "[paths]\nsrc = [\"src/\", \"properties/\"]", &["paths.sealed \"properties/\" is in paths.src as well"]),
    ("src_is_sealed_but_for_the_slash", "[paths]\nsrc = [\"src/\", \"properties\"]", &["is in paths.src as well"]),
    ("src_is_the_policy", "[paths]\nsrc = [\"src/\", \"ci/tribunal.toml\"]", &["paths.src \"ci/tribunal.toml\" is the policy itself"]),
    ("src_is_the_lease_file", "[paths]\nsrc = [\"src/\", \"ci/flake_leases.json\"]", &["paths.leases", "is in paths.src as well"]),
    ("leases_are_the_manifest", "[paths]\nleases = \"tests/sealed/MANIFEST.txt\"", &["paths.leases", "is in paths.manifest as well"]),
    ("tests_are_proposed", "[paths]\nproposed = [\"tests/\"]", &["paths.tests \"tests/\" is in paths.proposed as well"]),
    ("cassettes_are_one_file", "[paths]\ncassettes = \"cassettes\"", &["paths.cassettes must be a folder"]),
    ("manifest_is_a_folder", "[paths]\nmanifest = \"tests/sealed/\"", &["paths.manifest must be the exact path"]),
    ("manifest_outside_the_sealed", "[paths]\nmanifest = \"docs/MANIFEST.txt\"", &["paths.manifest must lie in a folder under paths.sealed"]),
    ("manifest_at_the_top", "[paths]\nmanifest = \"MANIFEST.txt\"", &["paths.manifest must lie in a folder under paths.sealed"]),
    ("manifest_where_src_is_longer", "[paths]\nsrc = [\"tests/sealed/a/\"]\nmanifest = \"tests/sealed/a/M.txt\"", &["paths.manifest must lie"]),
    ("path_twice", "[paths]\nsrc = [\"src/\", \"src/\"]", &["paths.src[1] stands there twice"]),
    ("path_no_text", "[paths]\nsrc = [7]", &["paths.src[0]", "got 7"]),
];

#[test]
fn every_mistake_names_its_key_and_what_is_right() {
    for (name, text, words) in REFUSED {
        let told = mistakes(text);
        assert_eq!(told.len(), 1, "{name}: {told:?}");
        for word in *words {
            assert!(
                told[0].contains(word),
                "{name}: {:?} lacks {word:?}",
                told[0]
            );
        }
    }
}

#[test]
fn all_mistakes_are_told_together() {
    let told = mistakes(
        "version = 3\nextra = 1\n[paths]\nsrc = [\"/a\", \"..\"]\n[pins]\nseed = -1\nclock = \"now\"\n[runs]\nreruns = 0\n[limits]\nmemory = 5\n",
    );
    let keys = [
        "version",
        "extra",
        "paths.src[0]",
        "paths.src[1]",
        "pins.seed",
        "pins.clock",
        "runs.reruns",
        "limits.memory",
    ];
    for key in keys {
        assert!(
            told.iter().any(|t| t.starts_with(key)),
            "{key} is not in {told:#?}"
        );
    }
    assert_eq!(told.len(), keys.len(), "{told:#?}");
}

#[test]
fn bytes_that_are_no_text_are_one_mistake() {
    let error = Policy::parse(b"version = 1 # \xff").unwrap_err();
    assert_eq!(
        error.to_string(),
        "ci/tribunal.toml: the file is not UTF-8 from byte 14 on"
    );
    let refused = Refused::from(error);
    assert_eq!(refused.code, RefusedCode::PolicyInvalid);
}

/// What is read out of a text that holds: the row's name, the text, and a look at the policy.
type Look = fn(&Policy) -> bool;
#[rustfmt::skip]
const READ: &[(&str, &str, Look)] = &[
    ("seed_least", "[pins]\nseed = 0", |p| p.pins.seed == Seed(0)),
    ("seed_most", "[pins]\nseed = 4294967295", |p| { p.pins.seed == Seed(u32::MAX)
    }),
    ("seed_hex_is_an_integer", "[pins]\nseed = 0xff", |p| { p.pins.seed == Seed(255)
    }),
    ("durations_ms", "[runs]\ncase_timeout = \"500ms\"", |p| { p.runs.case_timeout_ms == 500
    }),
    ("durations_m", "[runs]\nattempt_timeout = \"2m\"", |p| { p.runs.attempt_timeout_ms == 120_000
    }),
    ("sizes_kib", "[limits]\noutput = \"512KiB\"", |p| { p.limits.output == 524_288
    }),
    ("clock_in_utc", "[pins]\nclock = \"2026-09-12T02:00:00+02:00\"", |p| p.pins.clock == "2026-09-12T00:00:00Z"),
    ("clock_of_toml", "[pins]\nclock = 2026-09-12T00:00:00Z", |p| p.pins.clock == "2026-09-12T00:00:00Z"),
    ("zone_with_parts", "[pins]\ntimezone = \"America/Argentina/Buenos_Aires\"", |p| p.pins.timezone.ends_with("Aires")),
    ("zone_etc", "[pins]\ntimezone = \"Etc/GMT+5\"", |p| { p.pins.timezone == "Etc/GMT+5"
    }),
    ("import_roots_lose_their_slash", "[runner]\npythonpath = [\"lib/\", \".\"]", |p| p.runner.pythonpath == ["lib", "."]),
    ("sealed_inside_src", "[paths]\nsrc = [\"toolz/\"]\nsealed = [\"toolz/tests/\", \"ci/\"]\nmanifest = \"toolz/tests/MANIFEST.txt\"", |p| p.paths.src == ["toolz/"]),
    ("src_inside_sealed", "[paths]\nsrc = [\"src/\", \"properties/lib/\"]", |p| p.paths.src.len() == 2),
    ("src_of_one_file", "[paths]\nsrc = [\"parse.py\"]", |p| { p.paths.src == ["parse.py"]
    }),
    ("sealing_by_name_what_is_sealed", "[paths]\nprotect = [\"ci/tribunal.toml\", \"ci/\"]", |p| p.paths.protect.len() == 2),
    ("brackets_are_no_pattern", "[paths]\nprotect = [\"pages/[id].tsx\"]", |p| p.paths.protect.len() == 1),
    ("path_reruns", "[[runs.path]]\nprefix = \"tests/slow/\"\nreruns = 3", |p| p.runs.path[0].reruns == 3),
];

#[test]
fn what_holds_is_read() {
    for (name, text, look) in READ {
        let policy = Policy::parse(text.as_bytes()).unwrap_or_else(|e| panic_with(name, &e));
        assert!(look(&policy), "{name}: {policy:?}");
    }
}

#[expect(clippy::panic, reason = "names the row that did not parse")]
fn panic_with(name: &str, error: &PolicyError) -> Policy {
    panic!("{name}: {error}")
}

#[test]
fn the_digest_is_of_the_meaning_not_of_the_spelling() {
    let plain = Policy::parse(b"[runs]\ncase_timeout = \"120s\"\n[pins]\nseed = 255").unwrap();
    let other =
        Policy::parse(b"# why\npins = { seed = 0xff }\nruns.case_timeout = \"2m\"").unwrap();
    assert_eq!(plain.digest(), other.digest());
    assert_ne!(plain.digest(), Policy::default().digest());
    assert_eq!(
        Policy::default().digest().as_str(),
        "sha256:ea1bdfed436ab8b77e168929e16804505db0d52d96b270316e1b853666cf7885",
        "the canonical text is part of every statement: change it only on purpose"
    );
}

fn path_part() -> impl Strategy<Value = String> {
    "[a-zé_][a-z0-9é \"_.-]{0,6}[a-z]"
}

fn policies() -> impl Strategy<Value = Policy> {
    let env = vec("APP[A-Z]{0,3}_[A-Z0-9]{1,4}X", 0..3);
    let marks = vec("[a-zé_]{3,8}", 0..3);
    let nodes = vec("[ -~é\u{7f}\u{1}]{1,20}", 0..4);
    let shapes = (
        vec(path_part(), 1..3),
        vec(path_part(), 0..3),
        env,
        marks,
        nodes,
        (any::<u32>(), any::<u32>(), 0_i64..=253_402_300_799),
        (
            1_u32..=100,
            0_u32..=20,
            100_u64..=3_600_000,
            100_u64..=3_600_000,
        ),
        (
            64_u64 << 20..=256 << 30,
            1_u64..=16 << 30,
            any::<bool>(),
            any::<bool>(),
        ),
        (0_usize..3, any::<bool>(), any::<bool>()),
    );
    shapes.prop_map(
        |(src, protect, env, marks, nodes, numbers, runs, limits, choices)| {
            let mut policy = Policy::default();
            policy.paths.src = unique(src.into_iter().map(|p| format!("s/{p}/")));
            policy.paths.protect = unique(protect.into_iter().map(|p| format!("p/{p}")));
            policy.pins.seed_env = unique(env.into_iter());
            policy.runs.forbid_marks = unique(marks.into_iter());
            policy.runs.pin_sensitive = unique(nodes.into_iter())
                .iter()
                .map(|n| n.parse().unwrap())
                .collect();
            policy.pins.seed = Seed(numbers.0);
            policy.pins.hash_seed = numbers.1;
            policy.pins.source_date_epoch = numbers.2;
            (policy.runs.reruns, policy.runs.held_out) = (runs.0, runs.1);
            (policy.runs.attempt_timeout_ms, policy.runs.case_timeout_ms) = (runs.2, runs.3);
            (policy.limits.memory, policy.limits.src_bytes) = (limits.0, limits.1);
            (policy.limits.tmp_exec, policy.runs.require_strong_digest) = (limits.2, limits.3);
            policy.feedback.agent = [
                FeedbackLevel::Verdict,
                FeedbackLevel::Names,
                FeedbackLevel::Full,
            ][choices.0];
            if choices.1 {
                policy.runs.when_behind = WhenBehind::Refuse;
            }
            if choices.2 {
                policy.runs.path.push(PathReruns {
                    prefix: "tests/slow/".to_owned(),
                    reruns: 3,
                });
            }
            policy
        },
    )
}

fn unique(items: impl Iterator<Item = String>) -> Vec<String> {
    items
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect()
}

proptest! {
    #[test]
    fn what_is_rendered_is_read_back(policy in policies()) {
        let text = policy.render();
        prop_assert_eq!(Policy::parse(text.as_bytes()), Ok(policy), "{}", text);
    }

    #[test]
    fn any_bytes_are_a_policy_or_a_list_of_mistakes(bytes in vec(any::<u8>(), 0..200)) {
        if let Err(error) = Policy::parse(&bytes) {
            prop_assert!(!error.mistakes.is_empty());
        }
    }
}

#[test]
fn the_policy_in_the_docs_is_the_default_with_every_key() {
    let page = include_str!("../../../../docs/FORMATS.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    assert_eq!(Policy::parse(text.as_bytes()), Ok(Policy::default()));
    let keys = |text: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        lines.map(|(key, _)| key.trim().to_owned()).collect()
    };
    assert_eq!(keys(text), keys(&Policy::default().render()));
}
