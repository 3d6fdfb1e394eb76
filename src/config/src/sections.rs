//! The gateway itself: who it is, where it stores, how it logs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use picket_core::ids::NodeId;

use crate::etcd::{self, EtcdSettings};
use crate::node::NodeSettings;
use crate::table::Table;

/// `[gateway]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// `name`: how it is called in logs and answers. Default: the machine's host name.
    pub name: String,
    /// `node`: the node on which it stands, if it is one of its own; that one it never fences (S17). Default: none.
    pub node: Option<NodeId>,
    /// `kubernetes_node`: the Kubernetes Node on which its pod runs; a node of that name is the one on which it stands, or the one that a
    /// release finds by what that Node says of its machine (K13). Default: none.
    pub kubernetes_node: Option<String>,
    /// `check_at_start`: whether devices are checked, and identities learned, after the start. Default: true.
    pub check_at_start: bool,
    /// `simulated`: its devices switch no real machine, also where their drivers are those of real ones; then nothing is let go but
    /// by releases of kind `none` (S1). Default: whether its devices are of the driver `sim`.
    pub simulated: Option<bool>,
}

/// `[store]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSettings {
    /// `kind = "memory"`: forgets everything with the process, also which nodes are fenced. For tests alone.
    Memory,
    /// `kind = "embedded"`, the default.
    Embedded {
        /// `path`: an absolute path. Default: `/var/lib/picket/picket.redb`.
        path: PathBuf,
    },
    /// `kind = "etcd"`.
    Etcd(Box<EtcdSettings>),
}

impl StoreSettings {
    /// What stands beside the store by default has its name, with this ending; beside a store in memory nothing does.
    pub(crate) fn beside(&self, ending: &str) -> Option<PathBuf> {
        match self {
            StoreSettings::Memory => None,
            StoreSettings::Embedded { path } => Some(path.with_extension(ending)),
            StoreSettings::Etcd(_) => Some(Path::new(STORE).with_extension(ending)),
        }
    }
}

/// `[log]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// `format`: `text` or `json`. Default: `text`.
    pub format: LogFormat,
    /// `level`: `error`, `warn`, `info`, `debug` or `trace`. Default: `info`.
    pub level: LogLevel,
}

/// `[metrics]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsSettings {
    /// `listen`: where metrics and health are told over plain HTTP, to whoever asks; of the loopback alone, unless
    /// `public = true`. Default: nowhere.
    pub listen: Option<SocketAddr>,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// An object a line.
    Json,
}

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// Its word in the settings.
    pub fn word(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}

const LEVELS: [(&str, LogLevel); 5] = [
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];

const STORE: &str = "/var/lib/picket/picket.redb";

pub(crate) fn gateway(mut table: Table<'_>) -> Gateway {
    let node = table
        .text("node")
        .and_then(|text| NodeId::new(&text).map_err(|error| table.fault("node", error.to_string())).ok());
    let kubernetes_node = table.text("kubernetes_node");
    let name = table.text("name").unwrap_or_else(host_name);
    let check_at_start = table.flag("check_at_start").unwrap_or(true);
    let simulated = table.flag("simulated");
    table.done();
    Gateway { name, node, kubernetes_node, check_at_start, simulated }
}

impl Gateway {
    /// That it stands on a Kubernetes Node, says whoever started its pod, who does not know which Nodes are nodes of ours. Why the two
    /// contradict each other, if they do.
    pub(crate) fn contradicts(&self, nodes: &BTreeMap<NodeId, NodeSettings>) -> Option<String> {
        let (node, name) = (self.node.as_ref()?, self.kubernetes_node.as_ref()?);
        let found = nodes.keys().find(|id| id.as_str() == name && *id != node)?;
        Some(format!(
            "{found} is a node in these settings, and node says {node}: a gateway stands on one of them"
        ))
    }
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "picketd".to_owned() } else { name.trim().to_owned() }
}

pub(crate) fn absolute(table: &mut Table<'_>, key: &'static str) -> Option<PathBuf> {
    let text = table.text(key)?;
    if Path::new(&text).is_absolute() {
        return Some(text.into());
    }
    table.fault(key, format!("expected an absolute path (\"/var/lib/...\"), found {text:?}"));
    None
}

#[derive(Clone, Copy)]
enum Kind {
    Embedded,
    Memory,
    Etcd,
}

pub(crate) fn store(mut table: Table<'_>) -> StoreSettings {
    let kinds = [("embedded", Kind::Embedded), ("memory", Kind::Memory), ("etcd", Kind::Etcd)];
    let kind = table.word("kind", &kinds).unwrap_or(Kind::Embedded);
    let settings = match kind {
        Kind::Embedded => {
            let path = absolute(&mut table, "path");
            StoreSettings::Embedded { path: path.unwrap_or_else(|| STORE.into()) }
        }
        Kind::Memory => {
            if table.get("path").is_some() {
                table.fault("path", "a store in memory has no path: remove it, or set kind = \"embedded\"");
            }
            StoreSettings::Memory
        }
        Kind::Etcd => {
            if table.get("path").is_some() {
                table.fault(
                    "path",
                    "a store in etcd has no path, but a prefix: remove it, or set kind = \"embedded\"",
                );
            }
            StoreSettings::Etcd(Box::new(etcd::read(&mut table)))
        }
    };
    table.done();
    settings
}

pub(crate) fn metrics(mut table: Table<'_>) -> MetricsSettings {
    let public = table.flag("public").unwrap_or(false);
    let listen = table.text("listen").and_then(|text| match text.parse::<SocketAddr>() {
        Ok(address) if public || address.ip().is_loopback() => Some(address),
        Ok(address) => {
            table.fault(
                "listen",
                format!(
                    "{address} is not of the loopback, and everybody who reaches it may read names of nodes and what \
                     goes on: set public = true beside it, or listen on 127.0.0.1"
                ),
            );
            None
        }
        Err(_) => {
            table.fault("listen", format!("expected an address with its port (\"127.0.0.1:9469\"), found {text:?}"));
            None
        }
    });
    table.done();
    MetricsSettings { listen }
}

pub(crate) fn log(mut table: Table<'_>) -> Log {
    let format = table.word("format", &[("text", LogFormat::Text), ("json", LogFormat::Json)]);
    let level = table.word("level", &LEVELS);
    table.done();
    Log { format: format.unwrap_or(LogFormat::Text), level: level.unwrap_or(LogLevel::Info) }
}
