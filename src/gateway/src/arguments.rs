//! The command line of `picketd`.

use std::path::PathBuf;

/// Out-of-band fencing gateway: switches failed nodes off, proves it, and only then lets their volumes go.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "picketd", version)]
pub struct Arguments {
    /// The settings file.
    #[arg(long, short, env = "PICKET_CONFIG", default_value = "/etc/picket/picket.toml")]
    pub config: PathBuf,

    /// Check the settings, and what a start by them needs (store, audit, receipts' key, the socket's directory), say
    /// every fault at once, and stop. Makes and sends nothing; run it as the user who runs picketd.
    #[arg(long)]
    pub check: bool,
}
