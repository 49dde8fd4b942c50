//! A server with the feature `otel` and a collector that listens: the spans of a score, in its caller's trace, with nothing in
//! them that a candidate wrote. Built apart: `make traces`.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use std::sync::{Arc, Mutex};
use tonic::{Request, Response, Status};
use tribunal_tests::{Server, Stage, Wire};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<ResourceSpans>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let spans = request.into_inner().resource_spans;
        self.0.lock().unwrap().extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// Listens on the address that comes with it, as long as the runtime lives.
    fn listening() -> (Self, tokio::runtime::Runtime, String) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let collector = Self::default();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let service = TraceServiceServer::new(collector.clone());
        let connections = tokio_stream::wrappers::TcpListenerStream::new(listener);
        let server = tonic::transport::Server::builder().add_service(service);
        runtime.spawn(server.serve_with_incoming(connections));
        (collector, runtime, address)
    }

    fn spans(&self) -> Vec<Span> {
        let heard = self.0.lock().unwrap();
        let scopes = heard.iter().flat_map(|r| &r.scope_spans);
        scopes.flat_map(|s| s.spans.clone()).collect()
    }
}

#[test]
fn a_score_is_spans_in_its_callers_trace_and_tells_nothing_of_its_content() {
    let (collector, _runtime, address) = Collector::listening();
    let server = Server::with_config(&format!(
        "log = \"warn\"\n[traces]\ncollector = \"http://{address}\"\n"
    ));
    let stage = Stage::small(&server);
    let mut wire = Wire::new(&server, &stage.registered, &stage.registered.agent);
    let head = stage.honest_patch("a note that nobody may read");
    stage.send(&stage.registered.agent, &head);
    wire.traced(&[PARENT]);
    let traced = wire.create(wire.asking(&head, "traced")).unwrap();
    wire.watch(&traced.name, 0).unwrap().ended.unwrap();
    wire.traced(&[]);
    let head = stage.wrong_patch("another note");
    stage.send(&stage.registered.agent, &head);
    let plain = wire.create(wire.asking(&head, "plain")).unwrap();
    wire.watch(&plain.name, 0).unwrap().ended.unwrap();
    // What was not told yet is told at the end.
    server.shutdown();

    let spans = collector.spans();
    let trace = hex::decode(&PARENT[3..35]).unwrap();
    let parent = hex::decode(&PARENT[36..52]).unwrap();
    let (ours, others): (Vec<&Span>, Vec<&Span>) = spans.iter().partition(|s| s.trace_id == trace);
    let named = |spans: &[&Span], name: &str| -> Vec<Span> {
        let named = spans.iter().filter(|s| s.name == name);
        named.map(|s| (*s).clone()).collect()
    };
    let call = named(&ours, "call");
    let call = call.iter().find(|call| {
        let below = named(&ours, "score");
        below.iter().any(|s| s.parent_span_id == call.span_id)
    });
    assert_eq!(call.unwrap().parent_span_id, parent);
    for (group, name) in [(&ours, &traced.name), (&others, &plain.name)] {
        let scores = named(group, "score");
        assert_eq!(scores.len(), 1, "{scores:#?}");
        let text = format!("{:?}", scores[0].attributes);
        assert!(text.contains(name.rsplit('/').next().unwrap()), "{text}");
        assert!(text.contains("completed"), "{text}");
        for stage in [
            "overlay",
            "base",
            "attempts",
            "merge-lane",
            "perturb",
            "judge",
            "publish",
        ] {
            let stages = named(group, stage);
            assert_eq!(stages.len(), 1, "{stage}: {stages:#?}");
            assert_eq!(stages[0].parent_span_id, scores[0].span_id, "{stage}");
            assert!(stages[0].end_time_unix_nano >= stages[0].start_time_unix_nano);
        }
    }
    let plain = named(&others, "score");
    assert!(plain[0].parent_span_id.is_empty(), "it has no parent");
    let everything = format!("{:?}", collector.0.lock().unwrap());
    for secret in [
        "nobody may read",
        "another note",
        "test_",
        "src/calc",
        "tbl_",
        head.as_str(),
        stage.registered.name.as_str(),
    ] {
        assert!(!everything.contains(secret), "spans hold {secret}");
    }
    let events = spans.iter().map(|s| s.events.len()).sum::<usize>();
    assert_eq!(events, 0, "lines of the log are not for collectors");
    assert!(everything.contains("tribunal-server"));
}

#[test]
fn a_collector_that_is_not_there_holds_up_nothing() {
    let server = Server::with_config("[traces]\ncollector = \"http://127.0.0.1:9\"\n");
    let stage = Stage::small(&server);
    stage.honest_patch("unheard");
    stage.score(&stage.agent(), "unheard").expect_code(0);
    let begun = std::time::Instant::now();
    server.shutdown();
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}
