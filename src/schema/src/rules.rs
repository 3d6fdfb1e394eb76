//! The numbers of the rules, and how much may be fenced.

use crate::DefaultValue::{Computed, Nothing, Value};
use crate::ValueType::{Duration, Integer, NeverOrDuration};
use crate::{Key, key};

/// `[rules]`.
pub const RULES: &[Key] = &[
    key("readings", Integer(2, u32::MAX), Value("2"), "Readings in a row that must say Off."),
    key("dwell", Duration("500ms", "1m"), Value("\"1s\""), "The least time between two readings that count."),
    key(
        "longest_cycle",
        Duration("5s", "10m"),
        Value("\"15s\""),
        "The time for which Off must hold after \"already off\", or where a device tells no restarts.",
    ),
    key(
        "trust_dwell",
        Duration("30s", "1h"),
        Value("\"1m\""),
        "The time for which Off must hold after a BMC restarted, where a restart is trusted.",
    ),
    key(
        "device_call",
        Duration("100ms", "5m"),
        Value("\"5s\""),
        "The time that a call to a device may take, where neither it nor its driver has another one.",
    ),
    key(
        "level_share",
        Duration("1s", "1h"),
        Value("\"3m\""),
        "A level's share of a fence's time; it has room for longest_cycle and three dwells, and for all readings.",
    ),
    key(
        "silent_share",
        Duration("1s", "1h"),
        Value("\"20s\""),
        "The share of a level of which nothing answers, or its slowest call's time if that is longer; at most level_share.",
    ),
    key(
        "fence_deadline",
        Duration("10s", "1d"),
        Value("\"10m\""),
        "The time from the request to the proof, where the caller has no other one; room as for level_share.",
    ),
    key(
        "cloud_poll",
        Duration("1s", "1m"),
        Value("\"2s\""),
        "The dwell of a cloud's device that has none of its own.",
    ),
    key(
        "cloud_level_share",
        Duration("1s", "1h"),
        Value("\"5m\""),
        "The level_share of a level with a cloud's device, where that is longer.",
    ),
    key(
        "cloud_fence_deadline",
        Duration("10s", "1d"),
        Value("\"15m\""),
        "The fence_deadline of a node with a cloud's device, where that is longer.",
    ),
    key("on_deadline", Duration("1s", "1d"), Value("\"5m\""), "The time from our on until On must be seen."),
    key("watch", Duration("1s", "10m"), Value("\"10s\""), "The time between two looks at a fenced node."),
    key(
        "supply_hold_up",
        Duration("1s", "10m"),
        Value("\"10s\""),
        "The time for which power supplies carry a machine after its last outlet fell.",
    ),
    key(
        "clock_jump",
        Duration("100ms", "10s"),
        Value("\"1s\""),
        "The jump of the wall clock that ends leadership.",
    ),
    key(
        "check_every",
        NeverOrDuration("10s", "1d"),
        Value("\"5m\""),
        "The time between two checks of each device of a node that is not fenced; 0s: never.",
    ),
    key("receipt_life", Duration("10s", "1h"), Value("\"1m\""), "The life of a receipt."),
    key(
        "receipt_margin",
        Duration("1s", "10m"),
        Value("\"5s\""),
        "The further time without an on, for readers of receipts whose clocks differ.",
    ),
    key("history", Duration("1d", "36500d"), Value("\"90d\""), "The time for which ended fences are kept."),
];

const MOST: u32 = 100_000;

const AT_ONCE: &str = "Fences at once, from the intent until all is released or a person is asked.";
const AT_ONCE_PERCENT: &str =
    "The same in percent of the nodes, rounded down, at least one; the lesser of both holds.";
const PER_WINDOW: &str = "Fences that begin within any window.";
const WINDOW: &str = "The time within which per_window holds.";

/// `[budget]`.
pub const BUDGET: &[Key] = &[
    key("at_once", Integer(1, MOST), Computed("1 under 10 nodes, else 10 percent"), AT_ONCE),
    key("at_once_percent", Integer(1, 100), Computed("10 from 10 nodes on"), AT_ONCE_PERCENT),
    key("per_window", Integer(1, MOST), Nothing, PER_WINDOW),
    key("window", Duration("1s", "30d"), Nothing, WINDOW),
    key(
        "min_not_fenced",
        Integer(0, MOST),
        Computed("half of the nodes, rounded up; of one node none"),
        "The nodes that are left unfenced; 0: no limit.",
    ),
    key(
        "cool_down",
        Duration("0s", "30d"),
        Value("\"10m\""),
        "The time from when a node is back until it may be fenced again.",
    ),
    key(
        "brake_percent",
        Integer(1, 100),
        Value("50"),
        "No new fence begins once so much of the fleet is asked for or kept off, and brake_least nodes are.",
    ),
    key("brake_least", Integer(1, MOST), Value("3"), "The least number of nodes at which the brake holds."),
    key(
        "queue_expires",
        Duration("1s", "1d"),
        Value("\"10m\""),
        "The time for which a request may wait in the queue.",
    ),
    key("queue_most", Integer(0, 10_000), Value("1000"), "The requests that may wait in the queue."),
];

/// `[groups.NAME.budget]`.
pub(crate) const OF_GROUP: &[Key] = &[
    key("at_once", Integer(1, MOST), Nothing, AT_ONCE),
    key("at_once_percent", Integer(1, 100), Nothing, AT_ONCE_PERCENT),
    key("per_window", Integer(1, MOST), Nothing, PER_WINDOW),
    key("window", Duration("1s", "30d"), Nothing, WINDOW),
    key(
        "min_not_fenced",
        Integer(0, MOST),
        Nothing,
        "The nodes of the group that are left unfenced; 0: no limit.",
    ),
];
