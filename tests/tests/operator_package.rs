//! The Debian package: what is in it, what its scripts do to a system, and that its programs run from there. Of the programs
//! that were just built; how they are linked is `deploy/dist.sh`'s.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tribunal_tests::{Server, binaries, loudly};

fn ran(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().unwrap()
}

/// Its stdout; it must succeed.
#[track_caller]
fn done(program: &str, args: &[&str]) -> String {
    let output = ran(program, args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}:\n{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn built(folder: &Path) -> PathBuf {
    let script = binaries::root().join("deploy/deb.sh");
    let binaries = binaries::server();
    let output = Command::new(script)
        .arg(binaries.parent().unwrap())
        .envs([
            ("DEB_COMPRESSION", "gzip"),
            ("SOURCE_DATE_EPOCH", "1796083200"),
        ])
        .env("DEB_OUT", folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let mut packages = fs::read_dir(folder).unwrap();
    packages.next().unwrap().unwrap().path()
}

/// A system with nothing but dpkg's own books.
fn bare(folder: &Path) -> PathBuf {
    let root = folder.join("root");
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    root
}

fn dpkg(root: &Path, args: &[&str]) {
    let own = format!("--root={}", root.display());
    // There is no shell in there: its scripts run out here, and are told where they are.
    let all = [&own, "--force-depends", "--force-script-chrootless"];
    done("dpkg", &[&all, args].concat());
}

fn lintian(package: &str) {
    if ran("sh", &["-c", "command -v lintian"]).status.success() {
        let allow = ["--allow-root", "--fail-on", "error"];
        done("lintian", &[&allow[..], &[package]].concat());
    } else {
        loudly("lintian is not here: the package was not held against Debian's policy");
    }
}

#[test]
fn the_package_holds_what_an_operator_needs_and_installs() {
    // The runner image is there, so that doctor finds everything in order.
    Server::own().shutdown();
    let folder = tempfile::tempdir().unwrap();
    let [package, again] = ["out", "again"].map(|name| built(&folder.path().join(name)));
    assert!(
        fs::read(&package).unwrap() == fs::read(&again).unwrap(),
        "two builds differ"
    );
    let package = package.to_str().unwrap();
    let field = |name: &str| done("dpkg-deb", &["-f", package, name]).trim().to_owned();
    assert_eq!(field("Package"), "tribunal");
    assert_eq!(field("Version"), env!("CARGO_PKG_VERSION"));
    let needs = field("Depends");
    for needed in ["git", "systemd | systemd-sysusers"] {
        assert!(needs.split(", ").any(|n| n == needed), "{needs}");
    }
    let listed = done("dpkg-deb", &["-c", package]);
    let modes: Vec<(&str, &str)> = listed
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let (mode, owner) = (words.next().unwrap(), words.next().unwrap());
            assert_eq!(owner, "root/root", "{line}");
            (mode, words.last().unwrap().trim_start_matches("./"))
        })
        .collect();
    for wanted in [
        ("-rwxr-xr-x", "usr/bin/tribunal"),
        ("-rwxr-xr-x", "usr/bin/tribunal-server"),
        ("-rw-r--r--", "etc/tribunal/server.toml"),
        (
            "-rw-r--r--",
            "usr/lib/systemd/system/tribunal-server.service",
        ),
        ("-rw-r--r--", "usr/share/doc/tribunal/OPERATIONS.md"),
        ("-rw-r--r--", "usr/share/doc/tribunal/copyright"),
    ] {
        assert!(modes.contains(&wanted), "{wanted:?} in\n{listed}");
    }
    lintian(package);

    let root = bare(folder.path());
    let at = |place: &str| root.join(place);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        dpkg(&root, &["--install", package]);
        let users = fs::read_to_string(at("etc/passwd")).unwrap();
        let user = users.lines().find(|l| l.starts_with("tribunal:")).unwrap();
        assert!(
            user.ends_with(":/var/lib/tribunal:/usr/sbin/nologin"),
            "{user}"
        );
        let state = fs::metadata(at("var/lib/tribunal")).unwrap();
        assert_eq!(state.permissions().mode() & 0o777, 0o700);
        assert_eq!(user.split(':').nth(2).unwrap(), state.uid().to_string());
    } else {
        loudly("not root: the package was unpacked, not installed");
        done("dpkg-deb", &["-x", package, root.to_str().unwrap()]);
    }
    let server = at("usr/bin/tribunal-server");
    let server = server.to_str().unwrap();
    let version = format!("tribunal-server {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(done(server, &["--version"]), version);
    let client = at("usr/bin/tribunal");
    assert!(done(client.to_str().unwrap(), &["--version"]).starts_with("tribunal "));

    let (data, config) = (folder.path().join("data"), at("etc/tribunal/server.toml"));
    let own = [
        "--data",
        data.to_str().unwrap(),
        "--config",
        config.to_str().unwrap(),
    ];
    done(server, &[&["init"], &own[..]].concat());
    std::os::unix::fs::symlink(binaries::cache().join("images"), data.join("images")).unwrap();
    let found = done(server, &[&["doctor"], &own[..]].concat());
    for line in ["engine", "image", "key", "git", "configuration"] {
        let good = found
            .lines()
            .any(|l| l.starts_with(&format!("ok\t{line}\t")));
        assert!(good, "{line}:\n{found}");
    }

    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        // What an operator changed and what was judged outlive the package.
        let changed = "name = \"mine\"\n";
        fs::write(&config, changed).unwrap();
        fs::write(at("var/lib/tribunal/tribunal.db"), "verdicts").unwrap();
        dpkg(&root, &["--force-confold", "--install", package]);
        assert_eq!(fs::read_to_string(&config).unwrap(), changed);
        dpkg(&root, &["--purge", "tribunal"]);
        assert!(!at("usr/bin/tribunal-server").exists());
        assert!(!config.exists());
        let kept = fs::read_to_string(at("var/lib/tribunal/tribunal.db"));
        assert_eq!(kept.unwrap(), "verdicts");
    }
}
