//! A request of which only the beginning is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::Frame;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Bytes, http};
use tonic::transport::Channel;
use tower::{Service, ServiceExt};

/// Says that a hundred bytes follow, sends three, and waits.
struct Half(Option<Bytes>);

impl http_body::Body for Half {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

/// Sends half a message to that path; what comes back is the error with which it is answered.
pub fn half(mut channel: Channel, path: &str) -> JoinHandle<Status> {
    let body = Body::new(Half(Some(Bytes::from_static(b"\0\0\0\0\x64abc"))));
    let request = http::Request::post(format!("http://gateway{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(body)
        .expect("a request");
    tokio::spawn(async move {
        let answer = channel.ready().await.expect("connected").call(request).await.expect("answered");
        Status::from_header_map(answer.headers()).expect("an error")
    })
}
