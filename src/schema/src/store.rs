//! The store, and the election of gateways that share one.

use crate::DefaultValue::{Nothing, Required, Value};
use crate::ValueType::{Duration, Flag, Text, TextMap, Texts, Word};
use crate::{Key, Variants, key};

/// The stores, by `kind`.
pub const STORES: Variants = Variants {
    by: "kind",
    common: &[key(
        "kind",
        Word(&["embedded", "memory", "etcd"]),
        Value("\"embedded\""),
        "The kind of store. A store in memory forgets with the process which nodes are fenced, and is for tests alone.",
    )],
    of: &[("embedded", STORE), ("memory", &[]), ("etcd", ETCD)],
    endings: &[],
};

/// `[store]` with `kind = "embedded"`.
pub const STORE: &[Key] = &[key(
    "path",
    Text,
    Value("\"/var/lib/picket/picket.redb\""),
    "The absolute path of the store's file on a local disk.",
)];

/// `[store]` with `kind = "etcd"`.
pub const ETCD: &[Key] = &[
    key("endpoints", Texts, Required, "The URLs of etcd's members, as https://etcd1:2379."),
    key("ca_file", Text, Nothing, "The CA that vouches for etcd's members; https endpoints need it."),
    key("cert_file", Text, Nothing, "The gateway's own certificate for etcd."),
    key("key_file", Text, Nothing, "The key of cert_file."),
    key("user", Text, Nothing, "The gateway's user in etcd, where no certificate tells who it is."),
    key("password_file", Text, Nothing, "The file that holds the user's password."),
    key("password_env", Text, Nothing, "The variable of the environment that holds it."),
    key("password_credential", Text, Nothing, "The systemd credential that holds it."),
    key(
        "prefix",
        Text,
        Value("\"/picket/\""),
        "The beginning of every key of this fleet: at most 256 letters, digits, -, _, . and /, the last one a /.",
    ),
    key("request", Duration("200ms", "30s"), Value("\"2s\""), "The time that one request may take."),
    key("dial", Duration("100ms", "30s"), Value("\"1s\""), "The time that making a connection may take."),
    key(
        "members",
        TextMap,
        Nothing,
        "etcd's members, each with the node that carries it, or \"\" for none: no fence costs etcd its quorum.",
    ),
    key(
        "allow_plaintext",
        Flag,
        Value("false"),
        "Endpoints on other machines may be http; never with a password.",
    ),
    key("allow_anonymous", Flag, Value("false"), "The gateway may have neither a certificate nor a user."),
    key(
        "allow_etcd_with_lease_bug",
        Flag,
        Value("false"),
        "Versions before 3.4.31, and 3.5.0 to 3.5.12, are taken; their deposed leaders may renew leases.",
    ),
];

/// `[election]`, with a store in etcd.
pub const ELECTION: &[Key] = &[
    key(
        "lease",
        Duration("3s", "60s"),
        Value("\"5s\""),
        "The time for which a silent leader still counts as one, in whole seconds.",
    ),
    key("advertise", Texts, Nothing, "The URLs by which callers reach this gateway, as https://g1:7070."),
    key(
        "take_over_settings",
        Flag,
        Value("false"),
        "The gateway leads also with other nodes, devices, rules or roles than the last leader had.",
    ),
];
