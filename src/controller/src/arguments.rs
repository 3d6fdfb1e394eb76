//! The command line.

use std::path::PathBuf;
use std::sync::LazyLock;

static VERSION: LazyLock<String> = LazyLock::new(|| picket_version::long(&[]));

/// Watches a Kubernetes' Nodes, and asks the gateway to fence those that failed.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "picket-controller", version, long_version = VERSION.as_str())]
pub struct Arguments {
    /// The settings file.
    #[arg(
        long,
        short,
        global = true,
        env = "PICKET_CONTROLLER_CONFIG",
        default_value = "/etc/picket/controller.toml"
    )]
    pub config: PathBuf,

    /// What else is to be done.
    #[command(subcommand)]
    pub task: Option<Task>,
}

/// What is done instead of watching.
#[derive(Clone, Copy, Debug, clap::Subcommand)]
pub enum Task {
    /// Print the definitions of FencingPolicy and of remediations, for kubectl apply -f -
    Crds,
    /// Say what is missing: permissions, by name; definitions; gateways that do not answer, and Nodes that they do not know. Changes nothing
    Check,
}
