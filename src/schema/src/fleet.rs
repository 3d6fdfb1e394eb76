//! Templates, nodes, and what every device has.

use crate::DefaultValue::{Computed, Nothing, Required, Value};
use crate::ValueType::{
    Duration, Flag, FlagOrDuration, Integer, NamedVariant, Table, Text, TextLists, TextMap, Texts, Word,
};
use crate::clouds::{AWS, GCP, OPENSTACK};
use crate::drivers::{AGENT, IPMI, PARENT, REDFISH, SIM};
use crate::{Key, Variants, key};

/// The drivers.
pub const DRIVERS: Variants = Variants {
    by: "driver",
    common: DEVICE,
    of: &[
        ("ipmi", IPMI),
        ("redfish", REDFISH),
        ("openstack", OPENSTACK),
        ("aws", AWS),
        ("gcp", GCP),
        ("agent", AGENT),
        ("sim", SIM),
        ("parent", PARENT),
    ],
    endings: &[("agent", &["_file", "_env", "_credential"])],
};

const LABELS: Key = key("labels", TextMap, Nothing, "Labels; each of them is a group.");
const LEVELS: Key = key(
    "levels",
    TextLists,
    Computed("the only device"),
    "Names of devices: levels are tried in order, and the devices of one level must be off together.",
);
const NODE_RELEASES: Key =
    key("releases", Texts, Nothing, "Names of releases, in the order in which they let volumes go.");
const DEVICES: Key = key("devices", NamedVariant(&DRIVERS), Nothing, "Devices, by name.");

/// `[templates.NAME]`.
pub const TEMPLATE: &[Key] = &[LEVELS, NODE_RELEASES, LABELS, DEVICES];

/// `[nodes.HOSTS]`.
pub const NODE: &[Key] = &[
    key(
        "template",
        Text,
        Nothing,
        "The template; labels and the keys of devices go over its own, one by one.",
    ),
    key("identity", Table(IDENTITY), Computed("learned"), "What the node's devices must say they control."),
    key(
        "provider_id",
        Text,
        Nothing,
        "The spec.providerID of the node's Node in Kubernetes; of one node alone.",
    ),
    key(
        "fenced_for",
        Text,
        Nothing,
        "A host list of nodes that run on it, and by whose fences it may be fenced.",
    ),
    LEVELS,
    NODE_RELEASES,
    LABELS,
    DEVICES,
];

/// `identity` of a node or a device.
pub const IDENTITY: &[Key] = &[
    key("uuid", Text, Nothing, "The machine's UUID."),
    key("serial", Text, Nothing, "The machine's serial number."),
];

/// Keys of every device.
pub const DEVICE: &[Key] = &[
    key(
        "driver",
        Word(&["ipmi", "redfish", "openstack", "aws", "gcp", "agent", "sim", "parent"]),
        Required,
        "The kind of driver.",
    ),
    key("call", Duration("100ms", "5m"), Computed("the driver's"), "The time that one call may take."),
    key("readings", Integer(2, u32::MAX), Computed("the rules'"), "Readings in a row that must say Off."),
    key(
        "dwell",
        Duration("500ms", "1m"),
        Computed("the rules'"),
        "The least time between two readings that count.",
    ),
    key(
        "longest_cycle",
        Duration("5s", "10m"),
        Computed("the rules'"),
        "The longest power cycle that somebody else may have under way.",
    ),
    key(
        "at_once",
        Integer(1, 64),
        Computed("1; of a Redfish service 4, of OpenStack 16"),
        "Calls side by side to what the device shares with other nodes' devices.",
    ),
    key(
        "pause",
        Duration("0s", "10s"),
        Value("\"0s\""),
        "The time from the beginning of one such call to the next one.",
    ),
    key(
        "retry",
        Duration("100ms", "1m"),
        Value("\"250ms\""),
        "The first pause before a failed call is tried again in a fence; it doubles, up to 2 s or this.",
    ),
    key(
        "trust_after_restart",
        FlagOrDuration("30s", "1h"),
        Value("false"),
        "Off counts again after a restart once it held so long, as claimed; true: the rules' trust_dwell.",
    ),
    key("verified", Flag, Value("false"), "The wiring of an outlet was verified."),
    key(
        "identity",
        Table(IDENTITY),
        Computed("the node's, else learned"),
        "What the device must say it controls.",
    ),
];
