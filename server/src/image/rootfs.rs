//! A root file system's tar, made repeatable: our times, no rights that running a file could give, and
//! nothing that differs from build to build. Order and owners are the source's.

use super::EPOCH;
use super::record::Package;
use std::io::{self, Read, Write};

/// mmdebstrap's tar, in its order (sorted by name), with our times and without what `kept_path` drops.
pub(super) fn rewrite(
    from: &mut dyn Read,
    to: &mut dyn Write,
    packages: &mut Vec<Package>,
) -> io::Result<()> {
    let mut source = tar::Archive::new(from);
    let mut target = tar::Builder::new(to);
    for entry in source.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let Some(name) = path.to_str().map(|name| {
            name.trim_start_matches("./")
                .trim_end_matches('/')
                .to_owned()
        }) else {
            continue;
        };
        if !kept_path(&name) {
            continue;
        }
        let kind = entry.header().entry_type();
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        // Nothing in a sealed room may gain a right by being run.
        header.set_mode(entry.header().mode()? & 0o1777);
        header.set_uid(entry.header().uid()?);
        header.set_gid(entry.header().gid()?);
        header.set_mtime(EPOCH);
        if kind.is_symlink() || kind.is_hard_link() {
            let link = entry.link_name()?.unwrap_or_default().into_owned();
            let link = if kind.is_hard_link() {
                link.strip_prefix("./").unwrap_or(&link)
            } else {
                &link
            };
            header.set_size(0);
            target.append_link(&mut header, &name, link)?;
        } else if kind.is_dir() {
            header.set_size(0);
            target.append_data(&mut header, &name, io::empty())?;
        } else if kind.is_file() {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            if name == "var/lib/dpkg/status" {
                packages.extend(installed(&String::from_utf8_lossy(&content)));
            }
            header.set_size(content.len() as u64);
            target.append_data(&mut header, &name, content.as_slice())?;
        }
    }
    target.into_inner()?.flush()
}

/// Devices come from the engine; logs, lists, backups and caches differ from build to build; the two
/// files that the host lends are its own; compiled files of packages outside Python's two folders
/// carry times.
fn kept_path(name: &str) -> bool {
    const DROPPED: [&str; 10] = [
        "dev/",
        "proc/",
        "sys/",
        "run/",
        "tmp/",
        "var/cache/",
        "var/log/",
        "var/lib/apt/lists/",
        "var/tmp/",
        "boot/",
    ];
    const FILES: [&str; 8] = [
        "etc/machine-id",
        "etc/resolv.conf",
        "etc/hostname",
        "etc/passwd-",
        "etc/group-",
        "etc/shadow-",
        "etc/gshadow-",
        "etc/.pwd.lock",
    ];
    let python = name.starts_with("usr/lib/python3");
    !(name.is_empty()
        || DROPPED.iter().any(|folder| name.starts_with(folder))
        || FILES.contains(&name)
        || (name.starts_with("var/lib/dpkg/") && name.ends_with("-old"))
        || (!python && name.contains("__pycache__")))
}

fn installed(status: &str) -> Vec<Package> {
    let field = |paragraph: &str, name: &str| {
        paragraph
            .lines()
            .find_map(|line| line.strip_prefix(name).map(|value| value.trim().to_owned()))
    };
    status
        .split("\n\n")
        .filter(|paragraph| {
            field(paragraph, "Status:").is_some_and(|status| status.ends_with(" installed"))
        })
        .filter_map(|paragraph| {
            Some(Package {
                name: field(paragraph, "Package:")?,
                version: field(paragraph, "Version:")?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
    use super::{EPOCH, installed, kept_path, rewrite};

    #[test]
    fn installed_packages_are_read_from_dpkgs_own_file() {
        let status = "Package: a\nStatus: install ok installed\nVersion: 1:2-3\n\nPackage: b\n\
                      Status: deinstall ok config-files\nVersion: 1\n";
        let found = installed(status);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found.first().map(|p| (p.name.as_str(), p.version.as_str())),
            Some(("a", "1:2-3"))
        );
    }

    #[test]
    fn what_differs_from_build_to_build_is_dropped_and_its_folder_kept() {
        for name in [
            "dev/null",
            "var/log/dpkg.log",
            "etc/machine-id",
            "usr/share/python3/__pycache__/x.pyc",
            "",
        ] {
            assert!(!kept_path(name), "{name}");
        }
        for name in [
            "dev",
            "var/log",
            "usr/lib/python3.13/__pycache__/os.cpython-313.pyc",
            "etc/passwd",
        ] {
            assert!(kept_path(name), "{name}");
        }
    }

    #[test]
    fn times_and_set_user_bits_do_not_pass() {
        let mut source = tar::Builder::new(Vec::new());
        let mut header = crate::image::archive::header(0);
        header.set_mode(0o4755);
        header.set_mtime(12345);
        header.set_size(1);
        source
            .append_data(&mut header, "./bin/su", b"x".as_slice())
            .unwrap();
        let mut header = crate::image::archive::header(0);
        header.set_entry_type(tar::EntryType::Link);
        header.set_size(0);
        source
            .append_link(&mut header, "./bin/su2", "./bin/su")
            .unwrap();
        let bytes = source.into_inner().unwrap();
        let mut layer = Vec::new();
        rewrite(&mut bytes.as_slice(), &mut layer, &mut Vec::new()).unwrap();
        let mut archive = tar::Archive::new(layer.as_slice());
        let entries: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let link = entry
                    .link_name()
                    .unwrap()
                    .map(|link| link.display().to_string());
                (
                    entry.path().unwrap().display().to_string(),
                    entry.header().mode().unwrap(),
                    entry.header().mtime().unwrap(),
                    link,
                )
            })
            .collect();
        assert_eq!(
            entries,
            [
                ("bin/su".to_owned(), 0o755, EPOCH, None),
                (
                    "bin/su2".to_owned(),
                    0o644,
                    EPOCH,
                    Some("bin/su".to_owned())
                ),
            ]
        );
    }
}
