//! An answer's body: keeps the slot of who asked for as long as it lasts, and ends when their certificate expires.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body as HttpBody, Frame, SizeHint};
use picket_core::time::{Clock, WallTime};
use tokio::time::{Sleep, sleep};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;
use tonic::codegen::http::HeaderMap;

use crate::admission::Slot;
use crate::fault::Fault;

/// The wall clock may be set: it is looked at at least so often.
const LOOK: Duration = Duration::from_secs(30);

/// When somebody's certificate is over, and what they are told then.
#[derive(Debug)]
pub(crate) struct CertificateExpiry {
    pub(crate) clock: Arc<dyn Clock>,
    /// The last moment at which it is good.
    pub(crate) last: WallTime,
    pub(crate) fault: fn(&str) -> Fault,
    pub(crate) name: String,
}

impl CertificateExpiry {
    fn left(&self) -> Option<Duration> {
        let left = self.last.millis().checked_sub(self.clock.wall().millis());
        left.map(|left| Duration::from_millis(left.saturating_add(1)).min(LOOK))
    }
}

/// The body, the slot, and the end.
#[derive(Debug)]
pub(crate) struct ExpiringBody {
    body: Body,
    slot: Option<Slot>,
    end: Option<(CertificateExpiry, Pin<Box<Sleep>>)>,
}

impl ExpiringBody {
    pub(crate) fn new(body: Body, slot: Slot, end: Option<CertificateExpiry>) -> Self {
        let end = end.map(|end| {
            let left = end.left().unwrap_or_default();
            (end, Box::pin(sleep(left)))
        });
        Self { body, slot: Some(slot), end }
    }

    /// What to say once the certificate has expired.
    fn expired(&mut self, context: &mut Context<'_>) -> Option<Status> {
        let (end, timer) = self.end.as_mut()?;
        while timer.as_mut().poll(context).is_ready() {
            match end.left() {
                None => return Some((end.fault)(&end.name).status()),
                Some(left) => timer.set(sleep(left)),
            }
        }
        None
    }
}

impl HttpBody for ExpiringBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.slot.is_none() {
            return Poll::Ready(None);
        }
        if let Some(status) = self.expired(context) {
            // Whatever fed the stream is let go at once.
            (self.body, self.slot, self.end) = (Body::empty(), None, None);
            let mut trailers = HeaderMap::new();
            return Poll::Ready(Some(status.add_header(&mut trailers).map(|()| Frame::trailers(trailers))));
        }
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() {
            (self.slot, self.end) = (None, None);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.slot.is_none() || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::stream::StreamExt;
    use picket_core::time::BootTime;
    use tokio::sync::Semaphore;
    use tokio::time::Instant;
    use tonic::Code;

    use super::*;

    /// A wall clock that goes with the runtime's, until somebody sets it.
    #[derive(Debug)]
    struct Wall(Instant, std::sync::atomic::AtomicU64);

    impl Clock for Wall {
        fn boot(&self) -> BootTime {
            BootTime::default()
        }

        fn wall(&self) -> WallTime {
            let ahead = self.1.load(std::sync::atomic::Ordering::SeqCst);
            WallTime::from_millis(self.0.elapsed().as_millis() as u64 + ahead)
        }
    }

    struct Silent;

    impl HttpBody for Silent {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Pending
        }
    }

    fn slots() -> (Arc<Semaphore>, Slot) {
        let slots = Arc::new(Semaphore::new(2));
        let take = || slots.clone().try_acquire_owned().expect("free");
        (slots.clone(), Slot::new(take(), take()))
    }

    fn until(seconds: u64) -> (Arc<Wall>, CertificateExpiry) {
        let wall = Arc::new(Wall(Instant::now(), 0.into()));
        let last = WallTime::from_millis(seconds * 1_000);
        (
            wall.clone(),
            CertificateExpiry { clock: wall, last, fault: super::super::expired, name: "db".to_owned() },
        )
    }

    async fn next(expiring: &mut ExpiringBody) -> Option<Result<Frame<Bytes>, Status>> {
        futures::stream::poll_fn(|context| Pin::new(&mut *expiring).poll_frame(context)).next().await
    }

    fn code(frame: Option<Result<Frame<Bytes>, Status>>) -> Option<Code> {
        let trailers = frame?.ok()?.into_trailers().ok()?;
        Status::from_header_map(&trailers).map(|status| status.code())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_the_certificate_that_opened_it_and_frees_its_place() {
        let (free, slot) = slots();
        let (_, end) = until(100);
        let began = Instant::now();
        let mut expiring = ExpiringBody::new(Body::new(Silent), slot, Some(end));
        assert_eq!(code(next(&mut expiring).await), Some(Code::Unauthenticated));
        assert_eq!((began.elapsed().as_secs(), free.available_permits()), (100, 2));
        assert!(next(&mut expiring).await.is_none() && expiring.is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_is_set_is_seen() {
        let (_free, slot) = slots();
        let (wall, end) = until(100_000);
        let mut expiring = ExpiringBody::new(Body::new(Silent), slot, Some(end));
        wall.1.store(100_000_000, std::sync::atomic::Ordering::SeqCst);
        let began = Instant::now();
        assert_eq!(code(next(&mut expiring).await), Some(Code::Unauthenticated));
        assert!(began.elapsed() <= LOOK, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_kept_until_the_body_ends_or_is_dropped() {
        let (free, slot) = slots();
        let mut expiring = ExpiringBody::new(Body::empty(), slot, None);
        assert_eq!(free.available_permits(), 0);
        assert!(next(&mut expiring).await.is_none());
        assert_eq!(free.available_permits(), 2);
        let (free, slot) = slots();
        drop(ExpiringBody::new(Body::new(Silent), slot, None));
        assert_eq!(free.available_permits(), 2);
    }
}
