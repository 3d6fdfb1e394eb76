//! The peer: a tonic service that answers an equal message, and does nothing else.

use std::convert::Infallible;
use std::path::Path;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use picket_proto::v1;
use prost::Message;
use tokio::net::UnixListener;
use tokio::sync::broadcast;
use tokio_stream::wrappers::{BroadcastStream, UnixListenerStream};
use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::{Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::Wrong;

#[derive(Clone)]
struct Echo {
    answer: v1::GetNodeResponse,
    changes: broadcast::Sender<v1::WatchNodesResponse>,
}

/// Serves until it is killed.
pub async fn serve(socket: &Path, message: &Path) -> Result<(), Wrong> {
    let answer = v1::GetNodeResponse::decode(std::fs::read(message)?.as_slice())?;
    let echo = Echo { answer, changes: broadcast::channel(1_024).0 };
    let incoming = UnixListenerStream::new(UnixListener::bind(socket)?);
    Ok(Server::builder().add_service(echo).serve_with_incoming(incoming).await?)
}

impl NamedService for Echo {
    const NAME: &'static str = picket_proto::SERVICE_NAME;
}

impl tower::Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let echo = self.clone();
        async move {
            let call = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            Ok(match call.as_str() {
                "GetNode" => Grpc::new(ProstCodec::default()).unary(Reads(echo), request).await,
                "WatchNodes" => {
                    Grpc::new(ProstCodec::default()).server_streaming(Watches(echo), request).await
                }
                // Stands for whatever changes a node.
                "Resume" => Grpc::new(ProstCodec::default()).unary(Changes(echo), request).await,
                other => Status::unimplemented(other.to_owned()).into_http(),
            })
        }
        .boxed()
    }
}

struct Reads(Echo);

impl UnaryService<v1::GetNodeRequest> for Reads {
    type Response = v1::GetNodeResponse;
    type Future = BoxFuture<'static, Result<Response<Self::Response>, Status>>;

    fn call(&mut self, _request: Request<v1::GetNodeRequest>) -> Self::Future {
        let answer = self.0.answer.clone();
        async move { Ok(Response::new(answer)) }.boxed()
    }
}

struct Changes(Echo);

impl UnaryService<v1::ResumeRequest> for Changes {
    type Response = v1::ResumeResponse;
    type Future = BoxFuture<'static, Result<Response<Self::Response>, Status>>;

    fn call(&mut self, _request: Request<v1::ResumeRequest>) -> Self::Future {
        let node = self.0.answer.node.clone().unwrap_or_default();
        let event = Some(v1::watch_nodes_response::Event::Node(node));
        let _ = self.0.changes.send(v1::WatchNodesResponse { revision: "1".to_owned(), event });
        async move { Ok(Response::new(v1::ResumeResponse::default())) }.boxed()
    }
}

struct Watches(Echo);

impl ServerStreamingService<v1::WatchNodesRequest> for Watches {
    type Response = v1::WatchNodesResponse;
    type ResponseStream = BoxStream<'static, Result<v1::WatchNodesResponse, Status>>;
    type Future = BoxFuture<'static, Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, _request: Request<v1::WatchNodesRequest>) -> Self::Future {
        let changes = BroadcastStream::new(self.0.changes.subscribe());
        let changes = changes.map(|change| change.map_err(|error| Status::data_loss(error.to_string())));
        let synced = v1::watch_nodes_response::Event::Synced(v1::WatchSynced::default());
        let first = v1::WatchNodesResponse { revision: "0".to_owned(), event: Some(synced) };
        let all = futures::stream::once(async move { Ok(first) }).chain(changes).boxed();
        async move { Ok(Response::new(all)) }.boxed()
    }
}
