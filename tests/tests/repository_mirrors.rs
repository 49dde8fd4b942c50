//! Mirrors whose remote is gone, silent, busy or was cut off in the middle.

#![expect(clippy::unwrap_used, reason = "a test fails loudly, where it stands")]

use std::time::{Duration, Instant};
use tribunal_server::repository::{
    GitRepository, Protocol, Repository, RepositoryError, RepositorySettings,
};
use tribunal_tests::world::{code, id};
use tribunal_tests::{Repo, World};

#[test]
fn a_remote_that_says_nothing_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let data = tempfile::tempdir().unwrap();
    let mut settings = RepositorySettings::new(data.path());
    settings.protocols = vec![Protocol::Git];
    settings.fetch_timeout = Duration::from_millis(300);
    let room = GitRepository::open(settings).unwrap();
    let begun = Instant::now();
    let added = room.add(
        &"x".parse().unwrap(),
        &format!("git://127.0.0.1:{port}/x"),
        "main",
    );
    assert!(
        matches!(&added, Err(RepositoryError::Aborted(a)) if a.message.contains("no answer")),
        "{added:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn locks_of_a_killed_git_do_not_stop_the_mirror_for_ever() {
    let world = World::on_disk();
    let repo = Repo::small();
    world.publish(&repo, &repo.head());
    let lock = world
        .disk()
        .1
        .join("repos/product.git/refs/heads/main.lock");
    std::fs::write(&lock, "").unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(3600);
    let times = std::fs::FileTimes::new().set_modified(old);
    std::fs::File::open(&lock)
        .unwrap()
        .set_times(times)
        .unwrap();
    repo.write("src/calc.py", "x = 1\n");
    let next = repo.commit("next");
    world.publish(&repo, &next);
    assert_eq!(world.tip(), next);
}

#[test]
fn many_fetches_do_not_pile_up() {
    let world = World::on_disk();
    let (room, data) = world.disk();
    let repo = Repo::small();
    let first = repo.head();
    for n in 0..60 {
        repo.git(&["checkout", "-q", "--detach", &first]);
        repo.write("src/calc.py", format!("x = {n}\n"));
        let tip = repo.commit("tip");
        world.publish(&repo, &tip);
        assert_eq!(world.tip(), tip);
        if n == 0 {
            // What a force push leaves behind may be what an upload builds on.
            world.send("a", &repo.bundle(&tip, &[&first])).unwrap();
        }
    }
    let last = world.tip();
    let packs = || {
        let pack = data.join("repos/product.git/objects/pack");
        let files = std::fs::read_dir(pack).unwrap().flatten();
        files
            .filter(|f| f.path().extension().is_some_and(|e| e == "pack"))
            .count()
    };
    assert!(packs() > 50);
    room.sync(&world.name).unwrap();
    assert!(packs() < 50, "{}", packs());
    let objects = world.open("a");
    for n in repo.git(&["rev-list", "--all", "--reflog"]).lines() {
        assert!(objects.commit(&id(n)).is_ok(), "{n}");
    }
    assert_eq!(world.tip(), last);
}

#[test]
fn a_remote_that_is_gone_is_our_trouble_and_comes_back() {
    let world = World::on_disk();
    let (room, _) = world.disk();
    let repo = Repo::small();
    let folder = repo.path().to_owned();
    let path = folder.display().to_string();
    let name = &world.name;
    for (remote, branch) in [
        (path.as_str(), "no-such-branch"),
        ("/nowhere/at/all", "main"),
        ("https://127.0.0.1:1/x.git", "main"),
    ] {
        let added = room.add(name, remote, branch);
        assert!(
            matches!(&added, Err(RepositoryError::Aborted(a)) if a.message.contains("unreachable")),
            "{added:?}"
        );
        assert!(room.list().is_ok_and(|names| names.is_empty()));
    }
    assert_eq!(
        code(room.add(name, "ext::sh -c 'touch /tmp/x'", "main")),
        "invalid-argument"
    );
    assert_eq!(code(room.add(name, &path, "--main")), "invalid-argument");
    assert!(room.add(name, &path, "main").is_ok());
    assert_eq!(code(room.add(name, &path, "main")), "invalid-argument");
    let away = folder.with_extension("away");
    std::fs::rename(&folder, &away).unwrap();
    let gone = room.refresh(name);
    assert!(
        matches!(&gone, Err(RepositoryError::Aborted(a)) if a.message.contains("unreachable")),
        "{gone:?}"
    );
    // The remote's address stays the operator's.
    assert!(!format!("{gone:?}").contains(&path));
    std::fs::rename(&away, &folder).unwrap();
    assert!(room.refresh(name).is_ok());
    assert!(room.remove(name).is_ok());
    assert_eq!(code(room.refresh(name)), "unknown-repository");
    assert!(room.add(name, &path, "refs/heads/main").is_ok());
}
