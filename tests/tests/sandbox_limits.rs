//! Every limit of a room, asserted on a running one: from inside by sealed tests, from outside by the engine's own word.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::outcome::{AttemptFacts, End};
use tribunal_server::sandbox::{RunEvent, RunFacts, RunOrder};
use tribunal_tests::sandbox::docker::{Engine, over};
use tribunal_tests::sandbox::{Order, Subject, told};

async fn run(engine: &Engine, order: RunOrder) -> RunFacts {
    let (events, mut heard) = mpsc::channel(64);
    let listening = tokio::spawn(async move { while heard.recv().await.is_some() {} });
    let facts = engine
        .sandbox()
        .run(order, events, CancellationToken::new())
        .await;
    listening.await.unwrap();
    facts.unwrap()
}

fn order(engine: &Arc<Engine>, names: &[&str]) -> Order {
    let subject: Arc<dyn Subject> = Arc::clone(engine) as Arc<dyn Subject>;
    Order::of(&subject, names)
}

/// What is red, with its message and the end of its traceback.
fn red(attempt: &AttemptFacts) -> Vec<String> {
    let mut red = Vec::new();
    for (case, told) in attempt.cases.iter().zip(told(attempt)) {
        if !told.ends_with(": passed") {
            let traces = case
                .phases
                .iter()
                .filter_map(|phase| phase.exception.as_ref());
            let traces: Vec<&str> = traces
                .map(|exception| exception.traceback.as_str())
                .collect();
            red.push(format!("{told}\n{}", traces.join("\n")));
        }
    }
    red
}

#[tokio::test(flavor = "multi_thread")]
async fn from_inside() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let mut order = order(&engine, &["test_limits.py"]);
        order.policy.limits.pids = 32;
        let facts = run(&engine, order.sealed().await.unwrap()).await;
        let attempt = &facts.attempts[0];
        assert_eq!(attempt.end.end, End::Finished, "{:?}", attempt.end);
        let red = red(attempt);
        assert!(red.is_empty(), "{}", red.join("\n\n"));
        assert!(
            attempt.collection_errors.is_empty(),
            "{:?}",
            attempt.collection_errors
        );
        assert!(attempt.cases.len() > 60, "{} cases", attempt.cases.len());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_outside() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let ordered = order(&engine, &["test_hangs.py"]).sealed().await.unwrap();
        let limits = ordered.policy.limits.clone();
        let tree = ordered.tree.digest.hex().to_owned();
        let (events, mut heard) = mpsc::channel(64);
        let cancel = CancellationToken::new();
        let (sandbox, token) = (engine.sandbox(), cancel.clone());
        let running = tokio::spawn(async move { sandbox.run(ordered, events, token).await });
        while !matches!(heard.recv().await.unwrap(), RunEvent::CasesDone(0, 1)) {}
        let names = engine.containers().await.unwrap();
        let seen = engine
            .docker
            .inspect_container(&names[0], None)
            .await
            .unwrap();
        cancel.cancel();
        running.await.unwrap().unwrap_err();

        let name = seen.name.unwrap();
        assert!(
            name.starts_with(&format!("/tribunal-{}-room-", engine.instance)),
            "{name}"
        );
        let host = seen.host_config.unwrap();
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(host.readonly_rootfs, Some(true));
        assert_eq!(host.ipc_mode.as_deref(), Some("private"));
        assert_eq!(host.log_config.unwrap().typ.as_deref(), Some("none"));
        assert_eq!(host.privileged, Some(false));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        let kept: BTreeSet<String> = host
            .cap_add
            .unwrap()
            .iter()
            .map(|name| name.trim_start_matches("CAP_").to_owned())
            .collect();
        let seven = [
            "CHOWN",
            "DAC_OVERRIDE",
            "FOWNER",
            "KILL",
            "SETGID",
            "SETPCAP",
            "SETUID",
        ];
        assert_eq!(kept, seven.map(str::to_owned).into());
        let options = host.security_opt.unwrap();
        assert!(
            options.contains(&"no-new-privileges".to_owned()),
            "{options:?}"
        );
        assert!(options.iter().any(|option| option.starts_with("seccomp={")));
        let memory = host.memory.unwrap();
        assert_eq!(host.memory_swap, Some(memory));
        assert!(memory as u64 > limits.memory + limits.tmp);
        assert!((memory as u64) < limits.memory + limits.tmp + (512 << 20));
        // PID 1 and the start's two, and four for the one attempt that may wait for its order.
        assert_eq!(host.pids_limit, Some(i64::from(limits.pids) + 18 + 4));
        // One for the attempt, and PID 1's share.
        assert_eq!(host.nano_cpus, Some(1_500_000_000));
        assert!(host.oom_score_adj.unwrap() <= 0);
        assert_eq!(host.init, Some(false));
        assert_eq!(host.auto_remove, Some(false));
        assert!(host.binds.unwrap_or_default().is_empty());
        assert!(host.devices.unwrap_or_default().is_empty());
        let mounts = seen.mounts.unwrap();
        assert_eq!(mounts.len(), 1, "{mounts:?}");
        assert_eq!(mounts[0].destination.as_deref(), Some("/tree"));
        assert_eq!(mounts[0].rw, Some(false));
        assert_eq!(
            mounts[0].name.as_deref(),
            Some(format!("tribunal-{}-tree-{tree}", engine.instance).as_str())
        );
        let config = seen.config.unwrap();
        assert_eq!(config.tty, Some(false));
        assert_eq!(config.user.as_deref(), Some("0:0"));
        let labels = config.labels.unwrap();
        assert_eq!(labels["tribunal.instance"], engine.instance);
        assert_eq!(labels["tribunal.kind"], "room");
        assert_eq!(labels["tribunal.score"], "0123456789abcdef0123456789abcdef");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_leave_nothing_to_each_other() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let order = order(&engine, &["test_leftovers.py"]).times(3);
        let facts = run(&engine, order.sealed().await.unwrap()).await;
        let mut uids = BTreeSet::new();
        for attempt in &facts.attempts {
            assert_eq!(attempt.end.end, End::Finished, "{:?}", attempt.end);
            let red = red(attempt);
            assert!(red.is_empty(), "{}", red.join("\n\n"));
            uids.insert(printed(attempt));
        }
        assert_eq!(uids.len(), 3, "{uids:?}");
    })
    .await;
}

/// What the attempt's cases printed.
fn printed(attempt: &AttemptFacts) -> String {
    let phases = attempt.cases.iter().flat_map(|case| &case.phases);
    phases.map(|phase| phase.output.as_str()).collect()
}

const TELLS_ITS_UID: &str = "import os\nimport time\n\n\ndef test_uid():\n    time.sleep(0.5)\n    print('uid', os.getuid())\n";

#[tokio::test(flavor = "multi_thread")]
async fn rooms_at_once_share_no_uid_and_no_core() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let cores = engine.docker.info().await.unwrap().ncpu.unwrap();
        let mut order = order(&engine, &[]).times(3);
        order.sealed.insert(
            "tests/sealed/test_uid.py".to_owned(),
            TELLS_ITS_UID.to_owned(),
        );
        let tree = order.sealed().await.unwrap().tree;
        let (changes, mut heard) = mpsc::unbounded_channel();
        let mut rooms = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (engine, order, changes) =
                (Arc::clone(&engine), order.on(tree.clone()), changes.clone());
            rooms.spawn(async move {
                let (events, mut heard) = mpsc::channel(1);
                let telling = tokio::spawn(async move {
                    while let Some(event) = heard.recv().await {
                        match event {
                            RunEvent::AttemptStarted(_) => changes.send(1).unwrap(),
                            RunEvent::AttemptEnded(_) => changes.send(-1).unwrap(),
                            RunEvent::Ready | RunEvent::SequelBegun | RunEvent::CasesDone(..) => {}
                        }
                    }
                });
                let facts = engine
                    .sandbox()
                    .run(order, events, CancellationToken::new())
                    .await;
                telling.await.unwrap();
                facts.unwrap()
            });
        }
        drop(changes);
        let mut uids = BTreeSet::new();
        while let Some(facts) = rooms.join_next().await {
            for attempt in &facts.unwrap().attempts {
                assert_eq!(attempt.end.end, End::Finished);
                assert!(uids.insert(printed(attempt)), "{uids:?}");
            }
        }
        assert_eq!(uids.len(), 12);
        // An end is told a little after the next may begin, so one more per room may seem to run; never all four at once
        // for long. What is exact is the count of turns, which `turns` has a test for.
        let (mut now, mut most) = (0, 0);
        while let Some(change) = heard.recv().await {
            now += change;
            most = most.max(now);
        }
        assert!(
            most <= cores + 2,
            "{most} attempts at once on {cores} cores"
        );
        assert_eq!(now, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_run_from_tmp_only_where_the_policy_says_so() {
    const SCRIPT: &str = "import subprocess\n\n\ndef test_script(tmp_path):\n    script = tmp_path / 'x'\n    \
        script.write_text('#!/bin/sh\\nexit 3\\n')\n    script.chmod(0o755)\n    \
        assert subprocess.run([script]).returncode == 3\n";
    over(Engine::new().await.unwrap(), |engine| async move {
        let mut order = order(&engine, &[]);
        order
            .sealed
            .insert("tests/sealed/test_script.py".to_owned(), SCRIPT.to_owned());
        let facts = run(&engine, order.sealed().await.unwrap()).await;
        let refused = told(&facts.attempts[0]);
        assert!(refused[0].contains("PermissionError"), "{refused:?}");
        order.policy.limits.tmp_exec = true;
        let facts = run(&engine, order.sealed().await.unwrap()).await;
        assert_eq!(told(&facts.attempts[0]), ["test_script: passed"]);
    })
    .await;
}
