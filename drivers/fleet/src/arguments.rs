//! The command line of `picket-fleet`.

use std::path::PathBuf;
use std::sync::LazyLock;

static VERSION: LazyLock<String> = LazyLock::new(|| picket_version::long(&[]));

/// Simulated BMCs on loopback addresses, to rehearse fencing with. Nothing here guards anything: their passwords and
/// certificates are for this machine alone.
#[derive(Debug, clap::Parser)]
#[command(name = "picket-fleet", version, long_version = VERSION.as_str())]
pub struct Arguments {
    /// The settings: which machines there are, and what happens to them (docs/rehearse-settings.md).
    pub settings: PathBuf,
    /// Only say whether the settings are right.
    #[arg(long)]
    pub check: bool,
}
