//! Uploads: whole, broken, too large, too slow, too many.

use super::*;
use std::io::ErrorKind;
use v1::upload_commits_request::Part;

fn header(size: u64) -> v1::UploadCommitsRequest {
    v1::UploadCommitsRequest {
        part: Some(Part::Header(v1::UploadHeader {
            parent: "repositories/demo".to_owned(),
            size,
        })),
    }
}

fn chunk(bytes: Vec<u8>) -> v1::UploadCommitsRequest {
    v1::UploadCommitsRequest {
        part: Some(Part::Chunk(bytes.into())),
    }
}

async fn send(
    bench: &Bench,
    messages: Vec<v1::UploadCommitsRequest>,
) -> Result<Vec<String>, Status> {
    let token = bench.token(Role::Agent, None);
    let mut api = bench.repositories(&token).await;
    let answer = api.upload_commits(tokio_stream::iter(messages)).await?;
    Ok(answer.into_inner().commits)
}

impl Bench {
    /// What the reader saw, once it has seen its end.
    async fn read(&self, uploads: usize) -> Vec<(usize, Result<(), ErrorKind>)> {
        loop {
            let seen = self.behind.uploads.lock().unwrap().clone();
            if seen.len() >= uploads {
                return seen;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_whole_upload_arrives_byte_for_byte() {
    let bench = bench(settings()).await;
    let half = vec![7; 1 << 20];
    let messages = vec![
        header((2 << 20) + 3),
        chunk(half.clone()),
        chunk(half),
        chunk(vec![1, 2, 3]),
    ];
    assert_eq!(send(&bench, messages).await.unwrap(), ["a".repeat(40)]);
    assert_eq!(bench.read(1).await, [((2 << 20) + 3, Ok(()))]);
}

#[tokio::test]
async fn a_stream_that_stops_half_way_is_incomplete_and_its_reader_knows() {
    let bench = bench(settings()).await;
    let told = send(&bench, vec![header(10), chunk(vec![0; 4])]).await;
    assert_eq!(reason(told), "UPLOAD_INCOMPLETE");
    assert_eq!(bench.read(1).await, [(4, Err(ErrorKind::UnexpectedEof))]);
}

#[tokio::test]
async fn a_connection_that_breaks_is_no_end_either() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.repositories(&token).await;
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    sender.send(header(10)).await.unwrap();
    sender.send(chunk(vec![0; 4])).await.unwrap();
    let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let upload = tokio::spawn(async move { api.upload_commits(stream).await });
    while bench.behind.begun.load(Ordering::SeqCst) < 1 {
        tokio::task::yield_now().await;
    }
    upload.abort();
    drop(sender);
    let seen = bench.read(1).await;
    assert_eq!(seen[0].1, Err(ErrorKind::UnexpectedEof));
}

#[tokio::test]
async fn what_breaks_the_form_is_refused_and_never_ends_a_reader() {
    let bench = bench(settings()).await;
    for (messages, expected) in [
        (vec![], "INVALID_ARGUMENT"),
        (vec![chunk(vec![0; 4])], "INVALID_ARGUMENT"),
        (vec![header(0)], "INVALID_ARGUMENT"),
        (vec![header(9 << 20)], "TOO_LARGE"),
        (vec![header(u64::MAX)], "TOO_LARGE"),
        (vec![header(3), chunk(vec![0; 4])], "INVALID_ARGUMENT"),
        (vec![header(4), header(4)], "INVALID_ARGUMENT"),
        (
            vec![header(4), v1::UploadCommitsRequest { part: None }],
            "INVALID_ARGUMENT",
        ),
        (
            vec![header(4 << 20), chunk(vec![0; (1 << 20) + 1])],
            "INVALID_ARGUMENT",
        ),
        (vec![header(4 << 20), chunk(vec![0; 2 << 20])], "TOO_LARGE"),
    ] {
        assert_eq!(reason(send(&bench, messages).await), expected);
    }
    let seen = bench.behind.uploads.lock().unwrap().clone();
    assert!(seen.iter().all(|(_, end)| end.is_err()), "{seen:?}");
}

#[tokio::test]
async fn what_the_repository_says_of_a_bundle_is_the_answer() {
    let bench = bench(settings()).await;
    let told = send(&bench, vec![header(6), chunk(b"bad???".to_vec())]).await;
    assert_eq!(reason(told), "BAD_OBJECT");
}

#[tokio::test]
async fn an_upload_that_dawdles_is_ended() {
    let bench = bench(WireSettings {
        uploads: UploadLimits {
            seconds: 1,
            ..settings().uploads
        },
        ..settings()
    })
    .await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.repositories(&token).await;
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    sender.send(header(10)).await.unwrap();
    let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let told = api.upload_commits(stream).await;
    assert_eq!(reason(told), "UPLOAD_INCOMPLETE");
    assert_eq!(bench.read(1).await, [(0, Err(ErrorKind::UnexpectedEof))]);
    drop(sender);
}

#[tokio::test]
async fn uploads_at_once_are_bounded() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut api = bench.repositories(&token).await;
        let (sender, receiver) = tokio::sync::mpsc::channel(4);
        sender.send(header(4)).await.unwrap();
        sender.send(chunk(vec![0; 1])).await.unwrap();
        let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
        let upload = tokio::spawn(async move { api.upload_commits(stream).await });
        held.push((sender, upload));
    }
    while bench.behind.begun.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    let third = send(&bench, vec![header(1), chunk(vec![0; 1])]).await;
    assert_eq!(reason(third), "QUEUE_FULL");
    for (sender, upload) in held {
        sender.send(chunk(vec![0; 3])).await.unwrap();
        drop(sender);
        upload.await.unwrap().unwrap();
    }
    send(&bench, vec![header(1), chunk(vec![0; 1])])
        .await
        .unwrap();
}
