//! The two binaries under test, built from this tree once per test process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The root of the source tree.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// `tribunal-server`.
#[must_use]
pub fn server() -> PathBuf {
    folder().join("tribunal-server")
}

/// `tribunal`.
#[must_use]
pub fn client() -> PathBuf {
    folder().join("tribunal")
}

/// A folder under the target folder that outlives a test run: for what is dear to make, such as the image.
#[must_use]
pub fn cache() -> PathBuf {
    let cache = place().parent().unwrap().join("tribunal-tests");
    std::fs::create_dir_all(&cache).unwrap();
    cache
}

/// Where cargo puts binaries.
fn place() -> PathBuf {
    // target/debug/deps/name-hash is the running test; binaries stand two steps up.
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().to_owned()
}

/// The same, with fresh binaries in it.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = place();
        let mut build = Command::new(env!("CARGO"));
        build
            .current_dir(root())
            .args(["build", "--locked", "--quiet", "--bins"]);
        if cfg!(feature = "otel") {
            build.args(["--features", "tribunal-server/otel"]);
        }
        if folder.ends_with("release") {
            // As the program that measures was built: with other features all of it would be built anew.
            build.args(["--release", "--workspace", "--examples"]);
        }
        // What cargo says of this test to the test is nothing to the build: some crates would be built anew for it.
        for (name, _) in std::env::vars_os() {
            let told = [
                "CARGO_PKG_",
                "CARGO_MANIFEST_",
                "CARGO_CRATE_",
                "CARGO_BIN_",
            ];
            if told.iter().any(|of| name.to_string_lossy().starts_with(of)) {
                build.env_remove(name);
            }
        }
        let built = build.status().unwrap();
        assert!(built.success(), "the binaries do not build");
        folder
    })
}
