//! Makes what the server carries inside itself for the runner image: the pin library and the witness,
//! compiled by rustc alone (they have no dependencies); the transport, a static program, compiled by a
//! cargo of its own in a target folder of its own (in this one it would wait for itself); and a clean copy
//! of the harness, without caches and tests.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let here = folder("CARGO_MANIFEST_DIR")?;
    let out = folder("OUT_DIR")?;
    let images = here.join("../images");
    println!(
        "cargo::rerun-if-changed={}",
        images.join("pins/src").display()
    );
    println!(
        "cargo::rerun-if-changed={}",
        images.join("witness/src").display()
    );
    library(&images, "pins", &out.join("libtribunal_pins.so"))?;
    library(&images, "witness", &out.join("tribunal_witness.so"))?;
    transport(&here, &images, &out)?;
    harness(&images.join("python/harness"), &out.join("harness"))?;
    // The cases of `selftest`: a new one is in with the next build.
    println!(
        "cargo::rerun-if-changed={}",
        here.join("../tests/cases").display()
    );
    for file in ["assemble.py", "requirements.txt"] {
        println!(
            "cargo::rerun-if-changed={}",
            images.join("python").join(file).display()
        );
    }
    Ok(())
}

fn folder(variable: &str) -> Result<PathBuf, Box<dyn Error>> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .ok_or_else(|| format!("cargo did not set {variable}").into())
}

/// The flags make the file small, free of this machine's paths and the same in every profile.
fn library(images: &Path, name: &str, library: &Path) -> Outcome {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let mut command = Command::new(rustc);
    command
        .current_dir(images.join(name))
        .args(["--crate-name", &format!("tribunal_{name}")])
        .args(["--crate-type", "cdylib", "--edition", "2024"])
        .args([
            "-C",
            "opt-level=2",
            "-C",
            "panic=abort",
            "-C",
            "lto=fat",
            "-C",
            "codegen-units=1",
        ])
        .args(["-C", "strip=symbols", "--remap-path-prefix"])
        .arg(format!("{}=images", images.display()))
        .args(["--target", &std::env::var("TARGET")?])
        .arg("src/lib.rs")
        .arg("-o")
        .arg(library);
    let status = command.status()?;
    if !status.success() {
        return Err(format!("the library {name} did not compile ({status}): {command:?}").into());
    }
    Ok(())
}

/// Small, and static: it runs in an image with another C library than this machine's, and the pin library that is loaded
/// into every other process there cannot be loaded into it.
fn transport(here: &Path, images: &Path, out: &Path) -> Outcome {
    let root = here.parent().ok_or("the server's folder has no parent")?;
    for path in ["transport/src", "transport/Cargo.toml", "../Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", images.join(path).display());
    }
    let target = std::env::var("TARGET")?;
    let build = out
        .ancestors()
        .nth(3)
        .ok_or("no target folder")?
        .join("transport");
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    );
    let flags = [
        "-Ctarget-feature=+crt-static".to_owned(),
        format!("--remap-path-prefix={}=root", root.display()),
        format!("--remap-path-prefix={}=cargo", cargo_home.display()),
    ];
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    // What this cargo tells its build scripts is not meant for another one.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let kept = ["CARGO_HOME", "CARGO_MAKEFLAGS"].contains(&&*text)
            || text.starts_with("CARGO_NET_")
            || text.starts_with("CARGO_HTTP_");
        let told = text.starts_with("CARGO") || text.starts_with("RUSTC_");
        if (told && !kept) || text == "RUSTFLAGS" {
            command.env_remove(&name);
        }
    }
    command
        .current_dir(root)
        .args(["build", "--quiet", "--locked", "--release"])
        .args([
            "--package",
            "tribunal-transport",
            "--bin",
            "tribunal-transport",
        ])
        .args(["--target", &target, "--target-dir"])
        .arg(&build)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s")
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort")
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    let status = command.status()?;
    if !status.success() {
        return Err(format!("the transport did not compile ({status}): {command:?}").into());
    }
    let program = build.join(target).join("release/tribunal-transport");
    fs::copy(&program, out.join("transport"))
        .map_err(|error| format!("cannot take {}: {error}", program.display()))?;
    Ok(())
}

fn harness(from: &Path, to: &Path) -> Outcome {
    println!("cargo::rerun-if-changed={}", from.display());
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    copy_python(from, to)
}

fn copy_python(from: &Path, to: &Path) -> Outcome {
    fs::create_dir_all(to)?;
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) => return Err(format!("cannot read {}: {error}", from.display()).into()),
    };
    for entry in entries {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if name != "__pycache__" && name != "tests" && !name.to_string_lossy().starts_with('.')
            {
                copy_python(&path, &to.join(name))?;
            }
        } else if path.extension().is_some_and(|extension| extension == "py") {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}
