//! The runner image: what is in it, that it comes out the same again, pins without any environment, the
//! system calls of a sealed room, and an image with a project's own dependencies. The base is kept
//! between runs in the target folder; `make image-repro` builds it twice from nothing.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::{Value, json};
use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use tribunal_server::image::{self, BuildOptions, BuiltImage, ImageError, Presence};

const NUMPY: &str = "numpy==2.3.4 \
    --hash=sha256:fc8a63918b04b8571789688b2780ab2b4a33ab44bfe8ccea36d3eba51228c953 \
    --hash=sha256:4ee6a571d1e4f0ea6d5f22d6e5fbd6ed1dc2b18542848e1e7301bd190500c9d7\n";

/// What all of these tests share, also from run to run.
fn shared_cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("image-cache")
}

/// Builds into a data folder of this test.
async fn build(
    data: &Path,
    cache: &Path,
    requirements: Option<&str>,
) -> Result<BuiltImage, ImageError> {
    let mut options = BuildOptions::new(data);
    cache.clone_into(&mut options.cache);
    if let Some(text) = requirements {
        let file = data.join("requirements.txt");
        std::fs::write(&file, text).unwrap();
        options.requirements = Some(file);
    }
    let docker = image::connect(None).await?;
    image::build(&docker, &options, &|step| eprintln!("image: {step}")).await
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/image")
        .join(name)
}

/// Runs a script as PID 1, much as the sandbox would, and reads the JSON that it prints.
fn run(image: &BuiltImage, arguments: &[&str], name: &str) -> Value {
    let code = std::fs::read_to_string(script(name)).unwrap();
    let mut child = Command::new("docker")
        .args(["run", "--rm", "-i", "--network=none", "--read-only", "--ipc=private", "--cap-drop=ALL"])
        .args(["--cap-add=SETUID", "--cap-add=SETGID", "--security-opt=no-new-privileges"])
        .args(["--tmpfs=/tmp", "--tmpfs=/run/tribunal:mode=0711", "--workdir=/"])
        .args(arguments)
        .args(["--entrypoint=python3", &image.engine_id, "-B"])
        // From a file, so that a spawned process can find its main module.
        .args(["-c", "import sys; open('/tmp/main.py', 'w').write(sys.stdin.read()); sys.argv = ['/tmp/main.py']; \
                      import runpy; runpy.run_path('/tmp/main.py', run_name='__main__')"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), code.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs Python in the image without the sandbox's mounts, as a user that owns nothing.
fn python(image: &BuiltImage, user: &str, code: &str) -> String {
    let output = Command::new("docker")
        .args([
            "run",
            "--rm",
            "--network=none",
            "--read-only",
            "--user",
            user,
            "--entrypoint=python3",
        ])
        .args(["--workdir=/", &image.engine_id, "-I", "-B", "-c", code])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_inputs_are_the_same_image_and_it_is_on_record() {
    let data = tempfile::tempdir().unwrap();
    let first = build(data.path(), &shared_cache(), None).await.unwrap();
    // Another cache with the same base: wheels are fetched and everything is assembled anew.
    let cache = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::create_dir(cache.path().join("base")).unwrap();
    for entry in std::fs::read_dir(shared_cache().join("base")).unwrap() {
        let entry = entry.unwrap();
        std::fs::hard_link(
            entry.path(),
            cache.path().join("base").join(entry.file_name()),
        )
        .unwrap();
    }
    let again = build(data.path(), cache.path(), None).await.unwrap();
    assert!(again.built_at >= first.built_at);
    assert_eq!(
        first,
        BuiltImage {
            built_at: first.built_at,
            ..again.clone()
        }
    );

    assert_eq!(
        image::find(data.path(), image::DEFAULT_TAG).unwrap(),
        Some(again.clone())
    );
    let docker = image::connect(None).await.unwrap();
    assert_eq!(
        image::presence(&docker, &again).await.unwrap(),
        Presence::Present
    );
    let gone = BuiltImage {
        engine_id: format!("sha256:{}", "0".repeat(64)),
        ..again
    };
    assert_eq!(
        image::presence(&docker, &gone).await.unwrap(),
        Presence::Absent
    );

    contents(&first);
}

/// What `export` wrote, with its record changed.
fn with_record(exported: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut archive = tar::Archive::new(exported);
    let mut changed = tar::Builder::new(Vec::new());
    let mut change = Some(change);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        if let Some(change) = change.take() {
            let mut record = serde_json::from_slice(&bytes).unwrap();
            change(&mut record);
            bytes = serde_json::to_vec(&record).unwrap();
        }
        let mut header = entry.header().clone();
        header.set_size(bytes.len() as u64);
        let path = entry.path().unwrap().into_owned();
        changed
            .append_data(&mut header, path, bytes.as_slice())
            .unwrap();
    }
    changed.into_inner().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_moves_to_a_server_that_cannot_build_and_nothing_else_does() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let image = build(here.path(), &shared_cache(), None).await.unwrap();
    let docker = image::connect(None).await.unwrap();
    let file = here.path().join("runner.tar");
    let exported = image::export(&docker, here.path(), &image.tag, &file).await;
    assert_eq!(exported.unwrap(), image);
    let none = image::export(&docker, there.path(), &image.tag, &file).await;
    assert!(matches!(none, Err(ImageError::Unknown(_))));

    let bytes = std::fs::read(&file).unwrap();
    let import =
        |bytes: Vec<u8>| image::import(&docker, there.path(), Box::new(Cursor::new(bytes)));
    let set =
        |name: &'static str, value: Value| with_record(&bytes, move |record| record[name] = value);
    let other = format!("sha256:{}", "0".repeat(64));
    for (bad, why) in [
        (Vec::new(), "it ends too soon"),
        (b"no tar at all".repeat(100), "no exported runner image"),
        (
            bytes[..bytes.len() / 2].to_vec(),
            "no exported runner image",
        ),
        (set("architecture", json!("riscv64")), "it is for riscv64"),
        (
            set("runnerDigest", json!(other)),
            "another version of tribunal-server",
        ),
        (set("digest", json!(other)), "another than its record says"),
        (set("tag", json!("tribunal/python:other")), "another tag"),
        (set("more", json!(1)), "its record: unknown field `more`"),
    ] {
        let error = import(bad).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(image::list(there.path()).unwrap(), []);
    assert_eq!(import(bytes.clone()).await.unwrap(), image);
    assert_eq!(image::list(there.path()).unwrap(), [image]);
}

fn contents(image: &BuiltImage) {
    let version = python(
        image,
        "65534:65534",
        "import platform; print(platform.python_version())",
    );
    assert_eq!(version, image.python);
    let report = python(
        image,
        "65534:65534",
        r#"
import json, os, sys, time, zoneinfo, importlib.util, pathlib
sys.path.insert(0, "/opt/tribunal/runner")
import pytest, hypothesis
caches = [p for p in map(pathlib.Path, (pytest.__cached__, json.__cached__, hypothesis.__cached__)) if p.exists()]
flags = [int.from_bytes(p.read_bytes()[4:8], "little") for p in caches]
print(json.dumps({
    "pytest": pytest.__version__,
    "unchecked": flags == [1, 1, 1],
    "pip": importlib.util.find_spec("pip") is not None,
    "preload": pathlib.Path("/etc/ld.so.preload").read_text(),
    "mapped": "libtribunal_pins.so" in pathlib.Path("/proc/self/maps").read_text(),
    "links": [os.readlink("/etc/passwd"), os.readlink("/etc/group")],
    "folders": [os.path.isdir(p) for p in ("/tree", "/srcfiles", "/home/attempt", "/run/tribunal", "/opt/tribunal/deps")],
    "harness": [os.path.exists("/opt/tribunal/harness/" + name) for name in ("__main__.py", "tests")],
    "zone": str(zoneinfo.ZoneInfo("US/Eastern")),
    "encoding": sys.getfilesystemencoding(),
    "times": len({os.stat(p).st_mtime for p in ("/usr/bin/python3", pytest.__file__, "/etc/ld.so.preload")}),
    "setuid": [p for r, _, fs in os.walk("/usr") for f in fs if not os.path.islink(p := os.path.join(r, f)) and os.stat(p).st_mode & 0o6000],
}))
"#,
    );
    let expected = format!(
        r#"{{"pytest": "{}", "unchecked": true, "pip": false, "preload": "/opt/tribunal/lib/libtribunal_pins.so\n", "mapped": true, "links": ["/run/tribunal/etc/passwd", "/run/tribunal/etc/group"], "folders": [true, true, true, true, true], "harness": [true, false], "zone": "US/Eastern", "encoding": "utf-8", "times": 1, "setuid": []}}"#,
        image
            .runner
            .iter()
            .find(|package| package.name == "pytest")
            .unwrap()
            .version
    );
    assert_eq!(report, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn children_without_an_environment_are_pinned_and_pid_1_is_not() {
    let data = tempfile::tempdir().unwrap();
    let image = build(data.path(), &shared_cache(), None).await.unwrap();
    let seen = run(&image, &[], "pinned.py");
    assert_eq!(seen["pid"], 1);
    let (real, own) = (
        seen["real"].as_i64().unwrap(),
        seen["own"].as_i64().unwrap(),
    );
    assert!(
        (real..real + 120).contains(&own),
        "PID 1 sees {own}, the time is {real}"
    );
    let attempts = seen["attempts"].as_array().unwrap();
    for attempt in attempts {
        assert_eq!(attempt["time"], 1_789_171_200);
        assert_eq!(attempt["date"], "1789171200");
        assert_eq!(attempt["environment"], "");
        assert_eq!(attempt["cpus"], "3");
        assert_eq!(attempt["shell"], "1789171200\nnone");
        assert_eq!(attempt["slept"], true);
        let draws = ["drawn", "child", "second child"].map(|name| attempt[name].as_str().unwrap());
        assert!(
            draws[0] != draws[1] && draws[1] != draws[2] && draws[0] != draws[2],
            "{draws:?}"
        );
    }
    // Two attempts under the same pins are the same, whatever was forked before; other pins are not.
    assert_eq!(attempts[0], attempts[1]);
    assert_ne!(attempts[1]["drawn"], attempts[2]["drawn"]);
    assert_ne!(attempts[1]["child"], attempts[2]["child"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_room_runs_tests_and_numpy_and_refuses_what_no_test_needs() {
    let data = tempfile::tempdir().unwrap();
    let image = build(data.path(), &shared_cache(), Some(NUMPY))
        .await
        .unwrap();
    assert_eq!(image.deps.len(), 1);
    assert_ne!(image.tag, image::DEFAULT_TAG);
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sandbox/seccomp.json");
    let seccomp = format!("--security-opt=seccomp={}", profile.display());
    let seen = run(&image, &[&seccomp, "--user=4242:4242"], "sealed.py");
    for (name, answer) in seen["denied"].as_object().unwrap() {
        // The C library takes this answer, and no other, for "use the older call".
        let expected = if name == "clone3" { "ENOSYS" } else { "EPERM" };
        assert_eq!(answer, expected, "{name}");
    }
    assert_eq!(
        seen["allowed"],
        json!({
            "threads": 10, "lock": true, "processes": 3, "spawned": 3, "asyncio": 0, "files": "x", "sockets": "x",
            "signals": "returned", "sqlite": [1], "epoll": [], "sleep": null, "numpy": [3, 11.0], "pytest": 0,
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requirements_that_do_not_fit_are_refused_in_words() {
    let data = tempfile::tempdir().unwrap();
    let hash = "--hash=sha256:95fdacbc0aef1fddf3ddb0ea4c3ed5c94d7ea4a5a2a2b1b9ac5d2e3e5e1f0c9d";
    for (text, words) in [
        (
            "numpy==2.3.4\n".to_owned(),
            "requirements.txt:1: numpy==2.3.4 has no hash",
        ),
        (
            format!("numpy==2.3.4 {hash}\n"),
            "pip could not fetch the packages",
        ),
    ] {
        let error = build(data.path(), &shared_cache(), Some(&text))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
    }
    // pytest needs pluggy and others, which this file does not list.
    let runner = include_str!("../../images/python/requirements.txt");
    let alone = runner
        .split("pytest==")
        .nth(1)
        .unwrap()
        .split("sortedcontainers")
        .next()
        .unwrap();
    let error = build(
        data.path(),
        &shared_cache(),
        Some(&format!("pytest=={alone}")),
    )
    .await
    .unwrap_err()
    .to_string();
    assert!(error.contains("pytest requires pluggy"), "{error}");
    assert_eq!(image::list(data.path()).unwrap(), []);
}
