//! Logs: text for people, JSON for machines, on standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::SubscriberBuilder;

/// Starts logging. `level` is a filter as in `RUST_LOG` (`info`, `picket_engine=debug,info`), which goes before it.
pub(crate) fn start(json: bool, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let builder = SubscriberBuilder::default()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    // A second daemon in one process (a test) keeps the first one's log.
    let _ = if json { builder.json().try_init() } else { builder.try_init() };
}
