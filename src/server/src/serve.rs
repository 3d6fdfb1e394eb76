//! Serving: the fencing service, health and reflection, on all listeners, until told to stop.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use picket_engine::Engine;
use picket_proto::v1::fencing_service_server::FencingServiceServer;
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;
use tower::layer::util::{Identity, Stack};
use tower::util::MapResponseLayer;

use crate::calls::Desk;
use crate::door::{Door, Limits};
use crate::health;
use crate::listen::{ListenError, Listeners};
use crate::service::Service;
use crate::too_large;

/// How long callers have to take their last message once the gateway goes down.
const GRACE: Duration = Duration::from_secs(3);
/// A connection whose peer is gone is found out in about this time.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Why nothing is served, or serving ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nothing can be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A listener failed.
    #[error("serving on {place} ended: {source}")]
    Listener {
        /// Which one.
        place: &'static str,
        /// Why.
        #[source]
        source: tonic::transport::Error,
    },
    /// The descriptors of the service cannot be read; a defect of the build.
    #[error("reflection cannot be offered: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// Serves `engine` on all listeners until `stop`, with the default [`Limits`].
pub async fn serve(engine: Engine, listeners: Listeners, stop: CancellationToken) -> Result<(), ServeError> {
    serve_within(Limits::default(), engine, listeners, stop).await
}

/// Serves `engine` on all listeners until `stop`; then every stream ends with `SHUTTING_DOWN`, and after at most 3 s
/// what is still open is closed.
pub async fn serve_within(
    limits: Limits,
    engine: Engine,
    listeners: Listeners,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let (reporter, health_service) = tonic_health::server::health_reporter();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(picket_proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let door = Arc::new(Door::new(&limits, stop.clone()));
    let service = FencingServiceServer::new(Service(Desk { engine: engine.clone(), door }))
        .max_decoding_message_size(limits.message);
    let routes = Routes::new(service).add_service(health_service).add_service(reflection);

    let largest = limits.message;
    let in_our_words = move |answer| too_large::in_our_words(answer, largest);

    let Listeners { unix, tcp } = listeners;
    let (unix, _file) = unix.map(|bound| (bound.listener, bound.file)).unzip();
    let mut serving: FuturesUnordered<BoxFuture<'static, Result<(), ServeError>>> = FuturesUnordered::new();
    if let Some(listener) = unix {
        let incoming = UnixListenerStream::new(listener);
        let server = server(&limits, in_our_words).add_routes(routes.clone());
        let served = server.serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
        serving.push(Box::pin(async move {
            served.await.map_err(|source| ServeError::Listener { place: "the Unix socket", source })
        }));
    }
    if let Some(listener) = tcp {
        let incoming = TcpListenerStream::new(listener);
        let server = server(&limits, in_our_words).add_routes(routes);
        let served = server.serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
        serving.push(Box::pin(async move {
            served.await.map_err(|source| ServeError::Listener { place: "TCP", source })
        }));
    }
    let all = async {
        while let Some(served) = serving.next().await {
            served?;
        }
        Ok(())
    };
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        biased;
        served = all => served,
        () = late => {
            tracing::warn!("callers did not take their last message in time; their connections are closed");
            Ok(())
        }
        // It ends with `stop`, and serving goes on for a moment then.
        () = async { health::follow(engine, reporter, stop.clone()).await; std::future::pending().await } => Ok(()),
    }
}

fn server<F>(limits: &Limits, in_our_words: F) -> Server<Stack<MapResponseLayer<F>, Identity>> {
    Server::builder()
        .max_concurrent_streams(limits.of_a_connection)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .layer(MapResponseLayer::new(in_our_words))
}
