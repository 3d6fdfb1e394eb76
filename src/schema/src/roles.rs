//! Roles, groups, and what says that a node recovered.

use crate::DefaultValue::{Computed, Nothing, Required, Value};
use crate::ValueType::{Duration, Flag, Integer, Integers, Table, Text, TextMap, Texts, Variant, Word};
use crate::releases::{
    CA_FILE, CLUSTER_UID, CONTEXT, KUBECONFIG, LOGIN_ENV, LOGIN_PROGRAM, PLAIN_HTTP, TOKEN,
};
use crate::rules::OF_GROUP;
use crate::{Key, Variants, key};

/// `[roles.NAME]`.
pub const ROLE: &[Key] = &[
    key(
        "role",
        Word(&["viewer", "controller", "operator", "admin", "attest"]),
        Required,
        "The role that is granted.",
    ),
    key("callers", Texts, Nothing, "Names of callers, each with one * at most."),
    key("uids", Integers, Nothing, "Users, over the Unix socket."),
    key("gids", Integers, Nothing, "Groups of users, over the Unix socket."),
    key("nodes", TextMap, Nothing, "Labels of the nodes for which the role holds; without it all nodes."),
    key("hosts", Text, Nothing, "A host list of the nodes for which the role holds; without it all nodes."),
    key(
        "holders",
        Texts,
        Nothing,
        "Names for which the callers may act besides themselves; an admin for any.",
    ),
];

/// `[groups.NAME]`.
pub const GROUP: &[Key] = &[
    key("hosts", Text, Nothing, "A host list of the group's nodes; not of a group by label."),
    key("labels", TextMap, Nothing, "Labels of the group's nodes; not of a group by label."),
    key(
        "drills",
        Flag,
        Computed("no drills, unless another group of the node says true"),
        "The group's nodes may be drilled.",
    ),
    key("budget", Table(GROUP_BUDGET), Nothing, "The group's limits; at least one."),
    key(
        "liveness",
        Variant(&SOURCES),
        Nothing,
        "The source that says whether a node of the group recovered.",
    ),
];

/// `[groups.NAME.budget]`.
pub const GROUP_BUDGET: &[Key] = OF_GROUP;

/// The liveness sources, by `kind`.
pub const SOURCES: Variants = Variants {
    by: "kind",
    common: LIVENESS,
    of: &[("http", HTTP), ("command", COMMAND), ("kubernetes", KUBERNETES)],
    endings: &[],
};

/// Keys of every liveness source.
pub const LIVENESS: &[Key] = &[
    key("kind", Word(&["http", "command", "kubernetes"]), Required, "The kind of source."),
    key(
        "timeout",
        Duration("100ms", "5s"),
        Value("\"2s\""),
        "The time of a whole look, for which the off waits.",
    ),
    key("consecutive", Integer(1, 10), Value("2"), "Answers in a row that must say that the node recovered."),
    key(
        "interval",
        Duration("50ms", "5s"),
        Value("\"250ms\""),
        "The time from one answer to the next question.",
    ),
];

const HTTP: &[Key] = &[
    key("url", Text, Required, "The URL that answers 2xx where the node recovered; {node} is its name."),
    key("body", Text, Nothing, "A text that a good answer has."),
    CA_FILE,
    PLAIN_HTTP,
    TOKEN[0],
    TOKEN[1],
    TOKEN[2],
];

const COMMAND: &[Key] = &[
    key(
        "program",
        Text,
        Required,
        "The program; exit code 0: the node recovered, 1: it did not, any other: no answer.",
    ),
    key("args", Texts, Nothing, "Its arguments; {node} is the node's name."),
    key("env", Texts, Nothing, "Names of variables that it inherits besides PATH."),
];

const KUBERNETES: &[Key] = &[
    KUBECONFIG,
    CONTEXT,
    LOGIN_PROGRAM,
    LOGIN_ENV,
    CLUSTER_UID,
    key("conditions", Texts, Value("[\"Ready=True\"]"), "The conditions of a Node that recovered."),
    key("find_by", Word(&["name", "provider_id"]), Value("\"name\""), "How the Node of a node is found."),
];
