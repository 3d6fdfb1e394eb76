//! The gateway itself, its doors, its limits and its files.

use crate::DefaultValue::{Computed, Nothing, Required, Value};
use crate::ValueType::{Duration, Flag, Integer, Size, Table, Text, Word};
use crate::{Key, key};

/// `[gateway]`.
pub const GATEWAY: &[Key] = &[
    key("name", Text, Computed("the host name"), "The gateway's name in logs and answers."),
    key(
        "node",
        Text,
        Nothing,
        "The node on which this gateway stands, if it is one of its own; the gateway never fences it.",
    ),
    key(
        "kubernetes_node",
        Text,
        Nothing,
        "The Kubernetes Node on which the gateway's pod runs, from the downward API's spec.nodeName.",
    ),
    key("check_at_start", Flag, Value("true"), "The start checks every device and learns its identity."),
    key(
        "simulated",
        Flag,
        Computed("true with devices of the driver sim"),
        "The devices switch no real machine; every status, evidence and receipt says so.",
    ),
];

/// `[listen]`.
pub const LISTEN: &[Key] = &[
    key(
        "unix",
        Text,
        Computed("\"/run/picket/picket.sock\", unless tcp is given"),
        "The absolute path of the Unix socket, of at most 107 bytes.",
    ),
    key(
        "tcp",
        Text,
        Nothing,
        "An address with its port; an address other than the loopback's needs [listen.tls].",
    ),
    key("tls", Table(LISTEN_TLS), Nothing, "TLS 1.3 on tcp, with certificates on both sides."),
];

/// `[listen.tls]`.
pub const LISTEN_TLS: &[Key] = &[
    key("cert_file", Text, Required, "The gateway's certificate with its chain, PEM."),
    key("key_file", Text, Required, "The certificate's key, mode 0600."),
    key("client_ca_file", Text, Required, "The CAs that vouch for callers."),
];

const MOST: u32 = 100_000;

/// `[limits]`.
pub const LIMITS: &[Key] = &[
    key(
        "calls",
        Integer(1, MOST),
        Value("256"),
        "Calls that are answered at once: so many that read, and as many that act.",
    ),
    key("calls_each", Integer(1, MOST), Value("64"), "Calls of one caller that are answered at once."),
    key(
        "streams",
        Integer(1, MOST),
        Value("4096"),
        "Open streams: so many that read, and as many that follow fences.",
    ),
    key("streams_each", Integer(1, MOST), Value("2048"), "Open streams of one caller."),
    key(
        "connections",
        Integer(1, MOST),
        Value("768"),
        "Open connections; each of the Unix socket and TCP has three quarters of them at most.",
    ),
    key("connections_each", Integer(1, MOST), Value("256"), "Open connections of one caller."),
    key("callers", Integer(1, MOST), Value("1024"), "Different callers at once."),
    key("rate", Integer(1, MOST), Value("500"), "Requests of one caller in a second, in the long run."),
    key("burst", Integer(1, MOST), Value("2000"), "Requests of one caller at once, after a rest."),
    key(
        "logins",
        Integer(1, MOST),
        Value("512"),
        "Logins to devices that run side by side; fences come first.",
    ),
    key("agents", Integer(1, MOST), Value("64"), "Fence agents that run side by side; fences come first."),
];

/// `[metrics]`.
pub const METRICS: &[Key] = &[
    key(
        "listen",
        Text,
        Nothing,
        "An address with its port for /metrics, /healthz and /readyz over plain HTTP.",
    ),
    key("public", Flag, Value("false"), "The address may be another one than the loopback's."),
];

/// `[log]`.
pub const LOG: &[Key] = &[
    key("format", Word(&["text", "json"]), Value("\"text\""), "The form of a line in the log."),
    key(
        "level",
        Word(&["error", "warn", "info", "debug", "trace"]),
        Value("\"info\""),
        "The least level that is logged.",
    ),
];

/// `[audit]`.
pub const AUDIT: &[Key] = &[
    key(
        "path",
        Text,
        Computed("beside the store, by its name; with a store in memory none"),
        "An absolute path of a directory of the audit's own.",
    ),
    key("rotate", Size("64KiB", Some("4GiB")), Value("\"64MiB\""), "The size at which the next file begins."),
    key("keep", Duration("1d", "36500d"), Value("\"90d\""), "The age at which a whole file is deleted."),
    key(
        "most",
        Size("256KiB", None),
        Computed("\"4GiB\", or four times rotate"),
        "The size of all files together, at least four times rotate; the oldest files are deleted.",
    ),
    key("fsync", Flag, Value("true"), "Each entry is forced to the disk before it counts as written."),
];

/// `[receipts]`.
pub const RECEIPTS: &[Key] = &[key(
    "key_file",
    Text,
    Computed("beside the store, by its name; with a store in memory none"),
    "The Ed25519 key that signs receipts, PKCS#8 as PEM; the first start makes it.",
)];
