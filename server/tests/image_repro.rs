//! The runner image, for real: built twice from nothing it is the same image, and what is in it is what
//! PROTOCOL.md says. Needs an engine, mmdebstrap, pip and a Debian mirror (`deploy/bootstrap.sh`).

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first surprise"
)]

use std::process::Command;
use tribunal_server::image::{self, BaseCache, BuildOptions, BuiltImage, Presence};

async fn build(options: &BuildOptions) -> BuiltImage {
    let docker = image::connect(None).await.unwrap();
    match image::build(&docker, options, &|step| eprintln!("image: {step}")).await {
        Ok(built) => built,
        Err(error) => panic!("failed to build the runner image: {error}"),
    }
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
async fn two_builds_from_nothing_are_one_image() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = [&one, &two].map(|folder| BuildOptions::new(folder.path()));
    let (first, second) = tokio::join!(build(&options[0]), build(&options[1]));
    assert_eq!(first.digest, second.digest);
    assert_eq!(first.engine_id, second.engine_id);
    assert_eq!(first.base, second.base);

    let third = build(&BuildOptions {
        base: BaseCache::Reuse,
        ..BuildOptions::new(one.path())
    })
    .await;
    assert_eq!(first.digest, third.digest);

    let recorded = image::find(one.path(), image::DEFAULT_TAG)
        .unwrap()
        .unwrap();
    assert_eq!(recorded, third);
    let docker = image::connect(None).await.unwrap();
    assert_eq!(
        image::presence(&docker, &recorded).await.unwrap(),
        Presence::Present
    );

    contents(&first);
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
