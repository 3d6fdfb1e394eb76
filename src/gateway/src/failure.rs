//! Why the daemon does not start, or ended.

use std::error::Error;
use std::io;

use picket_config::Faults;
use picket_core::store::StoreError;
use picket_store::OpenError;

/// Why the daemon does not start, or ended. Printed once, at the edge.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The settings are wrong.
    #[error("the settings are wrong:\n{0}")]
    Settings(Faults),
    /// A running gateway refused new settings, and goes on by those that it had.
    #[error("the new settings were refused as a whole, and the running ones stay: {0}")]
    Kept(String),
    /// A check found what would keep it from starting.
    #[error("{}", checked(settings, needs))]
    Check {
        /// What is wrong with the settings.
        settings: Option<Faults>,
        /// What is missing besides; not empty.
        needs: Vec<Need>,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A backup cannot be read.
    #[error("the backup {0}: {1}")]
    Backup(std::path::PathBuf, #[source] picket_store::backup::BackupError),
    /// A backup, or a restore, is not possible.
    #[error("{0}")]
    Refused(String),
    /// Devices could not be used for a fence; what each answered was printed.
    #[error("{unready} of {all} devices could not be used for a fence: their answers say why")]
    Unready {
        /// How many could not.
        unready: usize,
        /// How many were asked.
        all: usize,
    },
    /// Not now: something else has to happen first.
    #[error("{0}")]
    Later(String),
    /// The audit cannot be opened.
    #[error(transparent)]
    Audit(#[from] picket_audit::OpenError),
    /// The receipts' key is of no use.
    #[error(transparent)]
    Key(#[from] picket_receipt::KeyFault),
    /// The store became unusable, or cannot be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The settings want what this picketd was built without.
    #[error(
        "store.kind: this picketd was built without {0:?}: build it with that feature, or choose another kind"
    )]
    #[cfg_attr(feature = "etcd", allow(dead_code))]
    Built(&'static str),
    /// The service cannot listen.
    #[error(transparent)]
    Listen(#[from] picket_server::ListenError),
    /// The service broke.
    #[error(transparent)]
    Serve(#[from] picket_server::ServeError),
    /// What was asked for cannot be printed.
    #[error("cannot print: {0}")]
    Print(#[source] std::io::Error),
    /// Metrics cannot be told there.
    #[error("metrics.listen = {0}: {1}")]
    Metrics(std::net::SocketAddr, #[source] std::io::Error),
    /// The runtime or a signal handler cannot be set up.
    #[error("cannot start: {0}")]
    Start(#[source] std::io::Error),
}

/// What a start needs and would not find.
#[derive(Debug)]
pub(crate) struct Need {
    /// The setting that names it.
    pub(crate) key: &'static str,
    /// What a start would say.
    pub(crate) why: Box<Failure>,
}

fn checked(settings: &Option<Faults>, needs: &[Need]) -> String {
    let told = |need: &Need| format!("{}: {}{}", need.key, need.why, hint(&need.why));
    let needs: Vec<String> = needs.iter().map(told).collect();
    let needs = needs.join("\n");
    match settings {
        Some(faults) => {
            format!("the settings are wrong:\n{faults}\nand it could not start by them:\n{needs}")
        }
        None => format!("the settings are right, and it could not start by them:\n{needs}"),
    }
}

/// What would be right where the system says no more than that it is not allowed.
fn hint(why: &Failure) -> String {
    if matches!(why, Failure::Listen(_)) {
        return String::new();
    }
    let sources = std::iter::successors(why.source(), |error| (*error).source());
    let mut kinds = sources.filter_map(|error| error.downcast_ref::<io::Error>()).map(io::Error::kind);
    if !kinds.any(|kind| kind == io::ErrorKind::PermissionDenied) {
        return String::new();
    }
    let user = rustix::process::geteuid().as_raw();
    format!(" (it must be the user's who runs picketd; this check runs as user {user})")
}

impl Failure {
    /// Exit codes as in sysexits(3): 78 for wrong settings, 65 for a backup that is refused, 69 for devices that do not answer as they should, 73 for a file that cannot be made, 75 for what may work later, 70 for a damaged store.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Settings(_)
            | Failure::Kept(_)
            | Failure::Built(_)
            | Failure::Check { settings: Some(_), .. } => 78,
            // As the start would end, at the first of those that no later start mends by itself.
            Failure::Check { settings: None, needs } => {
                let codes = needs.iter().map(|need| need.why.code());
                codes.min_by_key(|code| *code == 75).unwrap_or(75)
            }
            // No later start finds another disk there.
            Failure::Open(OpenError::Shared { .. }) => 78,
            Failure::Key(fault) if fault.is_for_a_person() => 78,
            Failure::Open(OpenError::Damaged { .. }) | Failure::Store(StoreError::Damaged(_)) => 70,
            Failure::Backup(..) => 65,
            Failure::Unready { .. } => 69,
            Failure::Refused(_) => 73,
            Failure::Open(_)
            | Failure::Later(_)
            | Failure::Store(_)
            | Failure::Audit(_)
            | Failure::Key(_)
            | Failure::Listen(_)
            | Failure::Serve(_)
            | Failure::Metrics(..)
            | Failure::Print(_)
            | Failure::Start(_) => 75,
        }
    }
}
