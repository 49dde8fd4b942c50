//! The sandbox suite over both kinds of room: in this process, and in containers of a real engine.

use std::sync::Arc;
use tribunal_tests::sandbox::docker::{Engine, over};
use tribunal_tests::sandbox::fake::Fake;
use tribunal_tests::sandbox::suite;

macro_rules! conformance {
    ($($check:ident),* $(,)?) => {
        mod fake {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $check() {
                    suite::$check(Arc::new(Fake::new())).await;
                }
            )*
        }
        mod docker {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $check() {
                    let engine = Engine::new().await.expect("an engine with the runner image");
                    over(engine, |engine| suite::$check(engine)).await;
                }
            )*
        }
    };
}

conformance! {
    attempt_timeout,
    cancel,
    case_timeout,
    collect_only,
    digests,
    dropped,
    events,
    exit_at_import,
    exit_in_mid_run,
    exit_zero_in_mid_run,
    killed_in_mid_run,
    modules_that_do_not_load,
    order_that_does_not_hold,
    out_of_memory,
    parts_become_one,
    parts_end_as_the_first,
    outcomes,
    output_flood,
    room_killed,
    rooms_at_once,
    seal_once,
    seal_that_breaks,
    src_differs_between_runs,
    sweep,
    two_starts,
    unsilenced,
}
