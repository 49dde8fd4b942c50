//! A recording: the order goes out, requests come, answers go, the recording comes last.

use super::{Authorized, Remote, failure_of, repository_name};
use crate::failure::Failure;
use crate::outside::{Answered, Asked};
use bytes::Bytes;
use std::collections::BTreeMap;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tribunal_core::id::{CommitId, RepoName};
use tribunal_proto::v1;
use tribunal_proto::v1::cassette_service_client::CassetteServiceClient;
use tribunal_proto::v1::record_request::Message as Said;
use tribunal_proto::v1::record_response::Message as Told;

/// Bytes of a body in one message.
const PART: usize = 512 << 10;

/// A recording that goes on.
pub struct Recorder {
    say: mpsc::Sender<v1::RecordRequest>,
    told: Streaming<v1::RecordResponse>,
    coming: Option<Asked>,
}

/// What the server says.
#[derive(Debug)]
pub enum Heard {
    /// Perform this, and [`Recorder::answer`].
    Ask(u64, Asked),
    /// That was all.
    Recording(v1::Recording),
}

impl Remote {
    fn cassettes(&self) -> CassetteServiceClient<Authorized> {
        CassetteServiceClient::with_interceptor(self.channel.clone(), self.bearer.clone())
    }

    /// Begin.
    ///
    /// # Errors
    /// As the server says.
    pub async fn record(
        &self,
        repo: &RepoName,
        commit: &CommitId,
        node: &str,
        listings: &BTreeMap<String, Vec<String>>,
    ) -> Result<Recorder, Failure> {
        let (say, said) = mpsc::channel(16);
        let listings = listings
            .iter()
            .map(|(directory, names)| v1::RecordedListing {
                directory: directory.clone(),
                names: names.clone(),
            });
        let order = v1::RecordOrder {
            parent: repository_name(repo),
            commit: commit.to_string(),
            node_id: node.to_owned(),
            listings: listings.collect(),
        };
        // There is room in it, and the other end is held here.
        let _room = say.send(message(Said::Order(order))).await;
        let answer = self.cassettes().record(ReceiverStream::new(said)).await;
        let told = answer.map_err(|status| failure(&status))?.into_inner();
        Ok(Recorder {
            say,
            told,
            coming: None,
        })
    }
}

impl Recorder {
    /// The next request, or the end.
    ///
    /// # Errors
    /// As the server says, or it ends without a recording.
    pub async fn next(&mut self) -> Result<Heard, Failure> {
        loop {
            let message = self
                .told
                .message()
                .await
                .map_err(|status| failure(&status))?;
            match message.and_then(|message| message.message) {
                Some(Told::Recording(recording)) => return Ok(Heard::Recording(recording)),
                Some(Told::Ask(part)) => {
                    if let Some(head) = part.head {
                        self.coming = Some(asked(head));
                    }
                    let coming = self.coming.get_or_insert_default();
                    coming.body.extend_from_slice(&part.body);
                    if !part.more {
                        return Ok(Heard::Ask(part.id, std::mem::take(coming)));
                    }
                }
                None => {
                    return Err(Failure::usage(
                        "record the case",
                        "the server ended without a recording",
                        "ask again; if it stays so, use a client and a server of the same version",
                    ));
                }
            }
        }
    }

    /// What came back for a request; `None`: nothing did.
    pub async fn answer(&self, id: u64, answered: Option<&Answered>) {
        let (status, headers, body) = match answered {
            Some(answered) => (
                answered.status,
                answered.headers.as_slice(),
                answered.body.clone(),
            ),
            None => (0, [].as_slice(), Bytes::new()),
        };
        let parts = body.len().div_ceil(PART).max(1);
        for number in 0..parts {
            let (from, to) = (number * PART, body.len().min((number + 1) * PART));
            let headers = if number == 0 { headers } else { &[] };
            let headers = headers.iter().map(|(name, value)| v1::HeaderField {
                name: name.clone(),
                value: value.clone(),
            });
            let part = v1::ExchangeAnswer {
                id,
                status: status.into(),
                headers: headers.collect(),
                body: body.slice(from..to),
                more: number + 1 < parts,
            };
            // A server that is gone is told by what is heard next.
            let _gone = self.say.send(message(Said::Answer(part))).await;
        }
    }
}

fn message(said: Said) -> v1::RecordRequest {
    v1::RecordRequest {
        message: Some(said),
    }
}

fn failure(status: &tonic::Status) -> Failure {
    failure_of("record the case", status)
}

fn asked(head: v1::ExchangeHead) -> Asked {
    let headers = head.headers.into_iter();
    Asked {
        scheme: head.scheme,
        method: head.method,
        host: head.host,
        path: head.path,
        query: head.query,
        headers: headers.map(|field| (field.name, field.value)).collect(),
        body: Vec::new(),
    }
}
