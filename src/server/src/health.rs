//! Health: the gateway serves as long as it runs; the fencing service serves while this gateway leads.

use picket_engine::Engine;
use picket_proto::SERVICE_NAME;
use tokio_util::sync::CancellationToken;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

/// Tells who asks for the fencing service's health whether this gateway leads, until `stop`.
pub(crate) async fn follow(engine: Engine, reporter: HealthReporter, stop: CancellationToken) {
    loop {
        let (status, change) = match engine.leading() {
            Ok(term) => (ServingStatus::Serving, Some(term)),
            Err(_) => (ServingStatus::NotServing, None),
        };
        reporter.set_service_status(SERVICE_NAME, status).await;
        let changed = async {
            match change {
                Some(term) => engine.until_over(term).await,
                None => engine.until_leading().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = changed => {}
        }
    }
    reporter.set_service_status(SERVICE_NAME, ServingStatus::NotServing).await;
}
