//! Why the daemon does not start, or ended.

use picket_config::Faults;
use picket_core::store::StoreError;
use picket_store::OpenError;

/// Why the daemon does not start, or ended. Printed once, at the edge.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The settings are wrong.
    #[error("the settings are wrong:\n{0}")]
    Settings(Faults),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The audit cannot be opened.
    #[error(transparent)]
    Audit(#[from] picket_audit::OpenError),
    /// The receipts' key is of no use.
    #[error(transparent)]
    Key(#[from] picket_receipt::KeyFault),
    /// The store became unusable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The service cannot listen.
    #[error(transparent)]
    Listen(#[from] picket_server::ListenError),
    /// The service broke.
    #[error(transparent)]
    Serve(#[from] picket_server::ServeError),
    /// Metrics cannot be told there.
    #[error("metrics.listen = {0}: {1}")]
    Metrics(std::net::SocketAddr, #[source] std::io::Error),
    /// The runtime or a signal handler cannot be set up.
    #[error("cannot start: {0}")]
    Start(#[source] std::io::Error),
}

impl Failure {
    /// Exit codes as in sysexits(3): 78 for wrong settings, 75 for what may work later, 70 for a damaged store.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Settings(_) => 78,
            Failure::Key(fault) if fault.is_for_a_person() => 78,
            Failure::Open(OpenError::Damaged { .. }) | Failure::Store(_) => 70,
            Failure::Open(_)
            | Failure::Audit(_)
            | Failure::Key(_)
            | Failure::Listen(_)
            | Failure::Serve(_)
            | Failure::Metrics(..)
            | Failure::Start(_) => 75,
        }
    }
}
