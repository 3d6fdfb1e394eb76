//! A stream that follows a node, read to where a test wants it.

use picket_proto::v1::{FenceUpdate, Outcome};
use tokio_stream::StreamExt;
use tonic::{Status, Streaming};

use super::s;

type Stream = std::pin::Pin<Box<dyn futures::Stream<Item = Result<FenceUpdate, Status>> + Send>>;

/// A stream that follows a node.
pub struct Updates(Stream);

impl Updates {
    pub fn of<T: Send + 'static>(stream: Streaming<T>, update: fn(T) -> Option<FenceUpdate>) -> Self {
        Self(Box::pin(stream.map(move |answer| answer.map(|answer| update(answer).expect("an update")))))
    }

    /// The next message, within an hour.
    pub async fn next(&mut self) -> Option<Result<FenceUpdate, Status>> {
        tokio::time::timeout(s(3_600), self.0.next()).await.expect("a message, or the end, within an hour")
    }

    pub async fn update(&mut self) -> FenceUpdate {
        self.next().await.expect("a message").expect("no error")
    }

    /// All messages until the stream's end.
    pub async fn all(mut self) -> Vec<FenceUpdate> {
        let mut all = Vec::new();
        while let Some(update) = self.next().await {
            all.push(update.expect("no error"));
        }
        all
    }

    /// The outcome, which stands in the last message and in no other.
    pub async fn outcome(self) -> Outcome {
        let all = self.all().await;
        let (last, others) = all.split_last().expect("at least one message");
        assert!(others.iter().all(|update| update.outcome.is_none()), "{all:#?}");
        last.outcome.clone().unwrap_or_else(|| panic!("{all:#?}"))
    }

    /// The error with which the stream ends.
    pub async fn error(mut self) -> Status {
        loop {
            match self.next().await.expect("an error") {
                Ok(update) => assert_eq!(update.outcome, None),
                Err(status) => return status,
            }
        }
    }
}
