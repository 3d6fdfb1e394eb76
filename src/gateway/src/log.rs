//! Logs: text for people, JSON for machines, on standard error; with priorities where the journal reads it.

use std::sync::Arc;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::SubscriberBuilder;

use crate::journal::Journal;

/// Sets how much is logged.
type Set = Arc<dyn Fn(EnvFilter) + Send + Sync>;

/// How much is logged; it may be changed while the daemon runs.
#[derive(Clone, Default)]
pub(crate) struct Level(Option<Set>);

impl Level {
    /// So much from now on.
    pub(crate) fn change(&self, level: &str) {
        if let Some(set) = &self.0 {
            set(EnvFilter::new(level));
        }
    }
}

/// Starts logging at `level` (`info`). The settings alone say how much is logged; `RUST_LOG` is not asked.
pub(crate) fn start(json: bool, level: &str) -> Level {
    // A second daemon in one process (a test) keeps the first one's log.
    if json {
        let builder = SubscriberBuilder::default().json().with_writer(Journal::of_process());
        let builder = builder.with_env_filter(EnvFilter::new(level)).with_filter_reloading();
        let handle = builder.reload_handle();
        let started = builder.try_init();
        started.map_or_else(
            |_| Level::default(),
            |()| Level(Some(Arc::new(move |filter| drop(handle.reload(filter))))),
        )
    } else {
        let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let builder = SubscriberBuilder::default().with_ansi(ansi).with_writer(Journal::of_process());
        let builder = builder.with_env_filter(EnvFilter::new(level)).with_filter_reloading();
        let handle = builder.reload_handle();
        let started = builder.try_init();
        started.map_or_else(
            |_| Level::default(),
            |()| Level(Some(Arc::new(move |filter| drop(handle.reload(filter))))),
        )
    }
}
