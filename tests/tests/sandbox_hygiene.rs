//! Nothing is left behind: after a crash, a lost engine, a half-written tree; and errors say whose they are.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

use bollard::models::{ContainerCreateBody, HostConfig, VolumeCreateRequest};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, KillContainerOptionsBuilder, RemoveVolumeOptions,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_server::sandbox::docker::EngineFacts;
use tribunal_server::sandbox::{RunEvent, RunFacts, RunOrder, Sandbox, SandboxError};
use tribunal_tests::sandbox::docker::{Engine, over};
use tribunal_tests::sandbox::proxy::Proxy;
use tribunal_tests::sandbox::{Order, Subject, told};

fn order(engine: &Arc<Engine>, names: &[&str]) -> Order {
    let subject: Arc<dyn Subject> = Arc::clone(engine) as Arc<dyn Subject>;
    Order::of(&subject, names)
}

async fn run(engine: &Engine, order: RunOrder) -> Result<RunFacts, SandboxError> {
    let (events, mut heard) = mpsc::channel(64);
    let listening = tokio::spawn(async move { while heard.recv().await.is_some() {} });
    let facts = engine
        .sandbox()
        .run(order, events, CancellationToken::new())
        .await;
    listening.await.unwrap();
    facts
}

fn aborted<T>(result: Result<T, SandboxError>) -> Aborted {
    match result {
        Ok(_) => panic!("it succeeded"),
        Err(SandboxError::Aborted(aborted)) => aborted,
    }
}

/// Wait until the engine has no container of ours any more.
async fn until_empty(engine: &Engine, limit: Duration) {
    let until = Instant::now() + limit;
    while !engine.containers().await.unwrap().is_empty() {
        assert!(Instant::now() < until, "a leftover stayed for {limit:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A run that hangs, and has come as far as hanging.
async fn hanging(
    engine: &Arc<Engine>,
    cancel: CancellationToken,
) -> tokio::task::JoinHandle<Result<RunFacts, SandboxError>> {
    let ordered = order(engine, &["test_hangs.py"]).sealed().await.unwrap();
    let (events, mut heard) = mpsc::channel(64);
    let sandbox = engine.sandbox();
    let running = tokio::spawn(async move { sandbox.run(ordered, events, cancel).await });
    while !matches!(heard.recv().await.unwrap(), RunEvent::CasesDone(0, 1)) {}
    tokio::spawn(async move { while heard.recv().await.is_some() {} });
    running
}

/// A container as an earlier process of the instance would have left it, running or not.
async fn leave_container(engine: &Engine, instance: &str) -> String {
    let name = format!("tribunal-{instance}-room-left");
    let options = CreateContainerOptionsBuilder::new().name(&name).build();
    let body = ContainerCreateBody {
        image: Some(engine.image()),
        entrypoint: Some(vec![
            "/usr/bin/python3".to_owned(),
            "-c".to_owned(),
            "input()".to_owned(),
        ]),
        open_stdin: Some(true),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            ..HostConfig::default()
        }),
        labels: Some(HashMap::from([
            ("tribunal.instance".to_owned(), instance.to_owned()),
            ("tribunal.kind".to_owned(), "room".to_owned()),
        ])),
        ..ContainerCreateBody::default()
    };
    engine
        .docker
        .create_container(Some(options), body)
        .await
        .unwrap();
    engine.docker.start_container(&name, None).await.unwrap();
    name
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_of_an_earlier_process_are_swept_and_no_one_elses() {
    let other = Engine::new().await.unwrap();
    over(Engine::new().await.unwrap(), move |engine| async move {
        leave_container(&engine, &engine.instance).await;
        let neighbour = leave_container(&other, &other.instance).await;
        let swept = engine.sandbox.sweep(None).await.unwrap();
        let theirs = other.containers().await.unwrap().len();
        other.clean().await.unwrap();
        assert_eq!((swept.rooms, swept.trees), (1, 0));
        assert!(engine.containers().await.unwrap().is_empty());
        assert_eq!(theirs, 1, "{neighbour} was swept by another server");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_sweeps_what_was_running_and_writes_trees_anew() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let cancel = CancellationToken::new();
        let running = hanging(&engine, cancel.clone()).await;
        // The next process: it knows nothing of the first one's rooms and has lost its marks.
        let next = Engine::named(engine.instance.clone()).await.unwrap();
        let swept = next.sandbox.sweep(None).await.unwrap();
        assert_eq!((swept.rooms, swept.trees), (1, 1));
        assert!(next.containers().await.unwrap().is_empty());
        assert!(next.volumes().await.unwrap().is_empty());
        // The first one's run ends by itself, one way or the other, and does not come back.
        let _ended = running.await.unwrap();
        let next = Arc::new(next);
        let ordered = order(&next, &["test_src.py"]).sealed().await.unwrap();
        let facts = run(&next, ordered).await.unwrap();
        assert_eq!(told(&facts.attempts[0]), ["test_answer: passed"]);
        until_empty(&next, Duration::from_secs(20)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_was_left_half_written_is_written_again() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let order = order(&engine, &["test_src.py"]);
        // Sealed once to learn its name, then replaced by an empty volume that no mark covers.
        let whole = order.sealed().await.unwrap();
        let name = engine.volumes().await.unwrap().remove(0);
        engine
            .docker
            .remove_volume(&name, None::<RemoveVolumeOptions>)
            .await
            .unwrap();
        let next = Engine::named(engine.instance.clone()).await.unwrap();
        let request = VolumeCreateRequest {
            name: Some(name.clone()),
            labels: Some(HashMap::from([(
                "tribunal.instance".to_owned(),
                engine.instance.clone(),
            )])),
            ..VolumeCreateRequest::default()
        };
        engine.docker.create_volume(request).await.unwrap();
        let next = Arc::new(next);
        let again = self::order(&next, &["test_src.py"]).sealed().await.unwrap();
        assert_eq!(again.tree, whole.tree);
        let facts = run(&next, again).await.unwrap();
        assert_eq!(told(&facts.attempts[0]), ["test_answer: passed"]);
        assert_eq!(next.volumes().await.unwrap(), [name]);
        // Its room goes while its caller goes on; the other sandbox of this name would remove it a second time.
        next.sandbox.drain().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marked_tree_that_somebody_removed_is_written_again() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let order = order(&engine, &["test_src.py"]);
        order.sealed().await.unwrap();
        let name = engine.volumes().await.unwrap().remove(0);
        engine
            .docker
            .remove_volume(&name, None::<RemoveVolumeOptions>)
            .await
            .unwrap();
        let facts = run(&engine, order.sealed().await.unwrap()).await.unwrap();
        assert_eq!(told(&facts.attempts[0]), ["test_answer: passed"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_goes_away_is_ours_and_its_leftover_goes_when_it_is_back() {
    let mut proxy = Proxy::up();
    let instance = Engine::fresh_instance().unwrap();
    let engine = Engine::at(instance, Some(proxy.host())).await.unwrap();
    over(engine, move |engine| async move {
        let running = hanging(&engine, CancellationToken::new()).await;
        let began = Instant::now();
        proxy.stop().await;
        assert_eq!(
            aborted(running.await.unwrap()).code,
            AbortedCode::EngineUnavailable
        );
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
        assert_eq!(engine.containers().await.unwrap().len(), 1);
        // Meanwhile everything says so, and quickly.
        let began = Instant::now();
        let sealing = order(&engine, &["test_slow.py"]).sealed().await;
        assert_eq!(aborted(sealing).code, AbortedCode::EngineUnavailable);
        assert!(matches!(
            engine.sandbox.examine().await,
            EngineFacts::Unreachable(_)
        ));
        assert!(began.elapsed() < Duration::from_secs(5));
        proxy.start();
        until_empty(&engine, Duration::from_secs(40)).await;
        let ordered = order(&engine, &["test_src.py"]).sealed().await.unwrap();
        let facts = run(&engine, ordered).await.unwrap();
        assert_eq!(told(&facts.attempts[0]), ["test_answer: passed"]);
        engine.sandbox.drain().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_stops_its_containers_is_ours() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let running = hanging(&engine, CancellationToken::new()).await;
        let name = engine.containers().await.unwrap().remove(0);
        let began = Instant::now();
        // What it sends first when it shuts down.
        let options = KillContainerOptionsBuilder::new().signal("TERM").build();
        engine
            .docker
            .kill_container(&name, Some(options))
            .await
            .unwrap();
        let aborted = aborted(running.await.unwrap());
        assert_eq!(aborted.code, AbortedCode::EngineUnavailable, "{aborted}");
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
        assert!(engine.containers().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_not_there_at_the_start_is_found_later() {
    let mut proxy = Proxy::up();
    proxy.stop().await;
    let instance = Engine::fresh_instance().unwrap();
    let engine = Engine::at(instance, Some(proxy.host())).await.unwrap();
    over(engine, move |engine| async move {
        assert_eq!(
            aborted(engine.sandbox.sweep(None).await).code,
            AbortedCode::EngineUnavailable
        );
        proxy.start();
        let EngineFacts::Reached(facts) = engine.sandbox.examine().await else {
            panic!("the engine is up");
        };
        assert!(facts.has_seccomp());
        assert!(facts.cpus > 0 && facts.memory > 0 && !facts.version.is_empty());
        assert!(
            matches!(facts.cgroups.as_str(), "1" | "2"),
            "{}",
            facts.cgroups
        );
        engine.sandbox.sweep(None).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_is_over_within_a_second_and_a_half() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let cancel = CancellationToken::new();
        let running = hanging(&engine, cancel.clone()).await;
        let began = Instant::now();
        cancel.cancel();
        assert_eq!(aborted(running.await.unwrap()).code, AbortedCode::Cancelled);
        let took = began.elapsed();
        assert!(engine.containers().await.unwrap().is_empty());
        assert!(took < Duration::from_millis(1500), "{took:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_ends_rooms_and_says_so() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let running = hanging(&engine, CancellationToken::new()).await;
        engine.sandbox.drain().await;
        assert!(engine.containers().await.unwrap().is_empty());
        assert_eq!(
            aborted(running.await.unwrap()).code,
            AbortedCode::ServerRestarted
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_missing_is_said() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let order = order(&engine, &["test_src.py"]);
        let mut ordered = order.sealed().await.unwrap();
        ordered.image = format!("sha256:{}", "0".repeat(64));
        let run = aborted(run(&engine, ordered).await);
        assert_eq!(run.code, AbortedCode::ImageMissing, "{run}");
        let mut tree = tribunal_tests::sandbox::tree(engine.image(), &order.src);
        tree.image = "no/such:image".to_owned();
        let sealed = aborted(engine.sandbox.seal(tree).await);
        assert_eq!(sealed.code, AbortedCode::ImageMissing, "{sealed}");
        assert!(engine.containers().await.unwrap().is_empty());
        assert_eq!(engine.volumes().await.unwrap().len(), 1);
    })
    .await;
}
