//! The command line of `picketd`.

use std::path::PathBuf;
use std::sync::LazyLock;

/// What a gateway may be built with, and whether this one is.
const PARTS: [(&str, bool); 8] = [
    ("etcd", cfg!(feature = "etcd")),
    ("ipmi", cfg!(feature = "ipmi")),
    ("redfish", cfg!(feature = "redfish")),
    ("agent", cfg!(feature = "agent")),
    ("openstack", cfg!(feature = "openstack")),
    ("aws", cfg!(feature = "aws")),
    ("gcp", cfg!(feature = "gcp")),
    ("kubernetes", cfg!(feature = "kubernetes")),
];

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let parts = PARTS.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name);
    picket_version::long(&parts.collect::<Vec<_>>())
});

/// Out-of-band fencing gateway: switches failed nodes off, proves it, and only then lets their volumes go.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "picketd", version, long_version = VERSION.as_str())]
pub struct Arguments {
    /// The settings file.
    #[arg(long, short, global = true, env = "PICKET_CONFIG", default_value = "/etc/picket/picket.toml")]
    pub config: PathBuf,

    /// Check the settings, and what a start by them needs (store, audit, receipts' key, the socket's directory), say
    /// every fault at once, and stop. Makes nothing, and sends nothing but a question to a store in etcd: whether it is of use,
    /// or was moved. Run it as the user who runs picketd.
    #[arg(long)]
    pub check: bool,

    /// What to do with the store, without a gateway.
    #[command(subcommand)]
    pub task: Option<Task>,
}

/// What is done with the store without a gateway. docs/backup.md has the way, docs/gateways.md that of settings.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Task {
    /// Write all that the store keeps into a file. An embedded store: while picketd does not run (else: picket backup); one in
    /// etcd: at any time
    Backup {
        /// The file to make; one that is there is never overwritten.
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
        /// Mark the store as moved there, in words ("etcd at e1:2379"): no gateway opens it any more. No picketd may run.
        #[arg(long, value_name = "WHERE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        moved_to: Option<String>,
    },
    /// Make the store of the settings from a backup; there must be none. It begins another life, in which nothing is proven
    Restore {
        /// The backup.
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
    },
    /// Take the mark of a store away that was moved, where the new one was never used
    Unseal,
    /// Say that these settings are the fleet's from now on, where no gateway leads because each has others than those by which
    /// was led last. Once, on the machine of any gateway that has the right ones; running gateways need no restart. It stands
    /// in no audit: a gateway's audit is written by that gateway alone, and none is asked here
    AcceptSettings,
}
