//! A request's body that has to be here in time: who begins a message and does not end it is not waited for.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body as HttpBody, Frame, SizeHint};
use picket_proto::v1::ErrorReason;
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

use crate::fault::Fault;

/// The body, and how long it may take.
#[derive(Debug)]
pub(crate) struct TimedBody {
    body: Body,
    time: Duration,
    until: Instant,
    /// Made when the body is first waited for: most are here at once.
    timer: Option<Pin<Box<Sleep>>>,
    over: bool,
}

impl TimedBody {
    pub(crate) fn new(body: Body, time: Duration) -> Self {
        Self { body, time, until: Instant::now() + time, timer: None, over: false }
    }
}

fn late(time: Duration) -> Status {
    let message =
        format!("the request was not here in whole within {} s: send all of it at once", time.as_secs());
    Fault::new(ErrorReason::TooSlow, message).status()
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        let until = self.until;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if timer.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.over = true;
        Poll::Ready(Some(Err(late(self.time))))
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
