//! Releases: what lets volumes go.

use crate::DefaultValue::{Computed, Nothing, Required, Value};
use crate::ValueType::{Duration, Flag, Table, Text, Texts, Word};
use crate::{Key, Variants, key};

/// The releases, by `kind`.
pub const RELEASES: Variants = Variants {
    by: "kind",
    common: RELEASE,
    of: &[
        ("webhook", WEBHOOK),
        ("command", COMMAND),
        ("volumes", VOLUMES),
        ("kubernetes", KUBERNETES),
        ("none", &[]),
    ],
    endings: &[],
};

/// Keys of every release.
pub const RELEASE: &[Key] = &[
    key(
        "kind",
        Word(&["webhook", "command", "volumes", "kubernetes", "none"]),
        Required,
        "The kind of release; \"none\" sends nothing, and is the only one of a simulated gateway.",
    ),
    key(
        "deadline",
        Duration("10s", "1d"),
        Value("\"10m\""),
        "The time for the whole release, then a person is asked; of kubernetes at least 8m.",
    ),
    key("settle", Duration("0s", "10m"), Value("\"2s\""), "The time from the proof to the first attempt."),
    key(
        "attempt",
        Duration("1s", "5m"),
        Value("\"15s\""),
        "The time of one attempt: at most 5m of a program, 15s of none, 1m of the others, and the deadline.",
    ),
];

pub(crate) const CA_FILE: Key = key(
    "ca_file",
    Text,
    Computed("the system's CAs"),
    "The CAs that vouch for the receiver of an https URL.",
);
pub(crate) const PLAIN_HTTP: Key = key(
    "plain_http",
    Flag,
    Value("false"),
    "The URL may be http elsewhere than on the loopback; never with a token.",
);
pub(crate) const TOKEN: [Key; 3] = [
    key("token_file", Text, Nothing, "The file that holds the bearer token, mode 0600."),
    key("token_env", Text, Nothing, "The variable of the environment that holds it."),
    key("token_credential", Text, Nothing, "The systemd credential that holds it."),
];

const WEBHOOK: &[Key] = &[
    key("url", Text, Required, "The URL that is told once a node is proven off."),
    CA_FILE,
    PLAIN_HTTP,
    TOKEN[0],
    TOKEN[1],
    TOKEN[2],
];

const COMMAND: &[Key] = &[
    key("program", Text, Required, "The absolute path of the program."),
    key("args", Texts, Nothing, "Its arguments."),
    key("env", Texts, Nothing, "Names of variables that it inherits besides PATH."),
    key(
        "max_life",
        Duration("1s", "1d"),
        Computed("nothing bounds it, and a person is asked before the node is switched on"),
        "The time for which what it asked of others may go on after it was killed.",
    ),
];

const CHOICE: &[Key] = &[
    key("id", Texts, Nothing, "Ids, in full."),
    key("name", Texts, Nothing, "Names; a * stands for any text."),
    key("tag", Texts, Nothing, "Tags, as key or key=value."),
];

const VOLUMES: &[Key] = &[
    key(
        "device",
        Text,
        Computed("the only one that knows volumes"),
        "The node's device that knows its volumes.",
    ),
    key(
        "include",
        Table(CHOICE),
        Computed("all that may go"),
        "The volumes that go: those that one of its lists names.",
    ),
    key("exclude", Table(CHOICE), Nothing, "The volumes that stay, also where include names them."),
    key(
        "force",
        Word(&["never", "at_last"]),
        Value("\"never\""),
        "\"at_last\": volumes are detached by force once half of the deadline has passed in vain.",
    ),
];

pub(crate) const KUBECONFIG: Key = key(
    "kubeconfig",
    Text,
    Computed("the service account of the gateway's pod"),
    "The absolute path of a kubeconfig, mode 0600.",
);
pub(crate) const CONTEXT: Key =
    key("context", Text, Computed("the kubeconfig's current one"), "The context of the kubeconfig.");
pub(crate) const LOGIN_PROGRAM: Key = key(
    "login_program",
    Text,
    Nothing,
    "The absolute path of the program by which the kubeconfig's user logs in (exec).",
);
pub(crate) const LOGIN_ENV: Key =
    key("login_env", Texts, Nothing, "Names of variables that the login's program inherits besides PATH.");
pub(crate) const CLUSTER_UID: Key = key(
    "cluster_uid",
    Text,
    Required,
    "The UID of the cluster's namespace kube-system; another cluster may have a node of the same name.",
);

const KUBERNETES: &[Key] = &[
    KUBECONFIG,
    CONTEXT,
    LOGIN_PROGRAM,
    LOGIN_ENV,
    CLUSTER_UID,
    key(
        "owner",
        Text,
        Value("\"picket\""),
        "This installation, in the value of its taints: at most 32 letters, digits and hyphens.",
    ),
    key(
        "match",
        Word(&["identity", "name"]),
        Value("\"identity\""),
        "What makes a Node the node's: its system UUID or providerID is the device's, or its name is enough.",
    ),
    key(
        "find_by",
        Word(&["name", "provider_id", "system_uuid"]),
        Value("\"name\""),
        "How the Node of a node is found: by its name, its spec.providerID, or its system UUID.",
    ),
    key(
        "pods",
        Word(&["deleted", "left"]),
        Value("\"deleted\""),
        "Picket deletes the Node's pods, each by its UID, or leaves them to pod GC.",
    ),
    key(
        "node_deletion",
        Word(&["held", "free"]),
        Value("\"held\""),
        "A finalizer keeps the Node from the fence on until all is let go, or it does not.",
    ),
    key(
        "machines",
        Text,
        Nothing,
        "\"here\", or the absolute path of the management cluster's kubeconfig: no MachineHealthCheck replaces a fenced Node's Machine.",
    ),
    key(
        "network_fences",
        Word(&["left", "undone"]),
        Value("\"left\""),
        "\"undone\": once the Node is back, csi-addons takes its addresses off Ceph's blocklist.",
    ),
];
