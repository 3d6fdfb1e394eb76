//! Logs: text for people, JSON for machines, on standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::SubscriberBuilder;

/// Starts logging at `level` (`info`). The settings alone say how much is logged; `RUST_LOG` is not asked.
pub(crate) fn start(json: bool, level: &str) {
    let builder = SubscriberBuilder::default()
        .with_env_filter(EnvFilter::new(level))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    // A second daemon in one process (a test) keeps the first one's log.
    let _ = if json { builder.json().try_init() } else { builder.try_init() };
}
