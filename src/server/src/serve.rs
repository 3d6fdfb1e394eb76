//! Serving: the fencing service, health and reflection, on all listeners, until told to stop.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use picket_engine::Engine;
use picket_proto::v1::fencing_service_server::FencingServiceServer;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;
use tower::util::MapResponseLayer;

use crate::accept::Acceptor;
use crate::access_control::AccessControl;
use crate::admission::Limits;
use crate::calls::FencingHandlers;
use crate::guard::AccessRules;
use crate::guard::gate::GateLayer;
use crate::health;
use crate::listen::{ListenError, Listeners};
use crate::service::Service;
use crate::too_large;

/// How long callers have to take their last message once the gateway goes down.
const GRACE: Duration = Duration::from_secs(3);
/// Connections whose caller is known, and that wait to be served.
const WAITING: usize = 32;
/// A connection whose peer is gone is found out in about this time.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Why nothing is served, or serving ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nothing can be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The server failed.
    #[error("serving ended: {0}")]
    Server(#[source] tonic::transport::Error),
    /// The descriptors of the service cannot be read; a defect of the build.
    #[error("reflection cannot be offered: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// Serves `engine` on all listeners until `stop`, with the default [`Limits`], to everybody on this machine.
pub async fn serve(engine: Engine, listeners: Listeners, stop: CancellationToken) -> Result<(), ServeError> {
    serve_by(AccessRules::default(), engine, listeners, stop).await
}

/// The same with other limits.
pub async fn serve_within(
    limits: Limits,
    engine: Engine,
    listeners: Listeners,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    serve_by(AccessRules { limits, ..AccessRules::default() }, engine, listeners, stop).await
}

/// Serves `engine` on all listeners until `stop`, by these rules; then every stream ends with `SHUTTING_DOWN`, and after
/// at most 3 s what is still open is closed.
pub async fn serve_by(
    rules: AccessRules,
    engine: Engine,
    listeners: Listeners,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let access = AccessControl::new(rules, &engine, &listeners, stop.clone());
    serve_with(access, engine, listeners, stop).await
}

/// The same by an access control that the caller keeps: its rules may change meanwhile.
pub async fn serve_with(
    access: AccessControl,
    engine: Engine,
    listeners: Listeners,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let (reporter, health_service) = tonic_health::server::health_reporter();
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(picket_proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // Python's grpcio-reflection and older grpcurls ask by the name that came before v1.
    let AccessControl { guard, admission, .. } = access;
    let limits = admission.limits();
    let largest = limits.message;
    let health_service = health_service.max_decoding_message_size(largest);
    let older = reflection().build_v1alpha()?.max_decoding_message_size(largest);
    let reflection = reflection().build_v1()?.max_decoding_message_size(largest);
    let service = FencingServiceServer::new(Service(FencingHandlers::new(engine.clone(), admission.clone())))
        .max_decoding_message_size(largest);
    let routes = Routes::new(service).add_service(health_service).add_service(reflection).add_service(older);

    let Listeners { unix, tcp, tls } = listeners;
    let (unix, _file) = unix.map(|bound| (bound.listener, bound.file)).unzip();
    let (ready, incoming) = mpsc::channel(WAITING);
    let reception = Acceptor::new(guard.clone(), &limits, ready);
    let mut receiving: Vec<BoxFuture<'static, ()>> = Vec::new();
    receiving.extend(unix.map(|listener| reception.clone().of_unix(listener).boxed()));
    receiving.extend(tls.clone().map(|tls| async move { tls.keep_looking().await }.boxed()));
    receiving.extend(tcp.map(|listener| reception.clone().of_tcp(listener, tls).boxed()));
    drop(reception);
    let receiving = stop.clone().run_until_cancelled_owned(futures::future::join_all(receiving));

    let all = Server::builder()
        .max_concurrent_streams(limits.of_a_connection)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .layer(MapResponseLayer::new(move |answer| too_large::in_our_words(answer, largest)))
        .layer(GateLayer(admission))
        .add_routes(routes)
        .serve_with_incoming_shutdown(ReceiverStream::new(incoming), stop.clone().cancelled_owned());
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let ended = tokio::select! {
        biased;
        served = all => served.map_err(ServeError::Server),
        () = late => {
            tracing::warn!("callers did not take their last message in time; their connections are closed");
            Ok(())
        }
        // These end with `stop`, and serving goes on for a moment then.
        () = async {
            let health = health::follow(engine, reporter, stop.clone());
            tokio::join!(health, guard.keep_telling(), receiving);
            std::future::pending().await
        } => Ok(()),
    };
    // Only now nobody is refused any more.
    guard.settle();
    ended
}
