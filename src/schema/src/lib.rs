//! What the settings take: every key with type, range, default and a sentence.
//!
//! **Purpose.** One table ([`SETTINGS`]) from which the JSON schema for editors, the reference pages and
//! `picketd --print-settings` are made.
//! **Non-goals.** Nothing is checked here, and no reader asks the table: `picket-config`, the drivers and
//! the releases check.
//!
//! # Invariants
//!
//! - The table is what the readers do: a reader knows the same keys, and refuses what lies outside of a
//!   range here ([`Key::probes`]). Shown by `the_table_has_the_keys_that_each_kind_knows`,
//!   `each_kind_takes_what_lies_within_a_range_and_nothing_else`,
//!   `the_shipped_schema_is_that_of_the_table`.

mod clouds;
mod drivers;
mod fleet;
mod gateway;
mod json;
mod probe;
mod releases;
mod roles;
mod rules;
mod store;

pub use clouds::{AWS, GCP, OPENSTACK};
pub use drivers::{AGENT, IPMI, PARENT, REDFISH, SIM};
pub use fleet::{DEVICE, DRIVERS, IDENTITY, NODE, TEMPLATE};
pub use gateway::{AUDIT, GATEWAY, LIMITS, LISTEN, LISTEN_TLS, LOG, METRICS, RECEIPTS};
pub use json::{schema, shipped};
pub use probe::Probes;
pub use releases::{RELEASE, RELEASES};
pub use roles::{GROUP, GROUP_BUDGET, LIVENESS, ROLE, SOURCES};
pub use rules::{BUDGET, RULES};
pub use store::{ELECTION, ETCD, STORE, STORES};

/// A key of a table of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What it takes.
    pub value: ValueType,
    /// What holds where it is left out.
    pub default: DefaultValue,
    /// What it is, in a sentence.
    pub about: &'static str,
}

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A text that is not empty.
    Text,
    /// A text that is not empty, or a whole number.
    TextOrInteger,
    /// One of these words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Integer(u32, u32),
    /// A duration as the settings write it, from the first to the second.
    Duration(&'static str, &'static str),
    /// `0s`, or a duration from the first to the second.
    NeverOrDuration(&'static str, &'static str),
    /// `true`, `false`, or a duration from the first to the second.
    FlagOrDuration(&'static str, &'static str),
    /// A number of bytes with its unit, from the first on, up to the second if there is one.
    Size(&'static str, Option<&'static str>),
    /// A list of texts.
    Texts,
    /// A list of whole numbers.
    Integers,
    /// One of these lists of whole numbers.
    IntegerLists(&'static [&'static [u32]]),
    /// A list of lists of texts.
    TextLists,
    /// A table whose keys are names and whose values are texts.
    TextMap,
    /// A table whose keys are names and whose values are texts, numbers or flags.
    ScalarMap,
    /// A table with these keys.
    Table(&'static [Key]),
    /// A table whose keys are names, each of a table with these keys.
    Named(&'static [Key]),
    /// A table in which one key says which further keys there are.
    Variant(&'static Variants),
    /// A table whose keys are names, each of such a table.
    NamedVariant(&'static Variants),
}

/// Tables that one key tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variants {
    /// That key: `driver`, `kind`.
    pub by: &'static str,
    /// The keys that each of them has, that one among them.
    pub common: &'static [Key],
    /// The values of that key, each with its own keys.
    pub of: &'static [(&'static str, &'static [Key])],
    /// Endings of keys whose first part is a name that the variant alone knows, by variant.
    pub endings: &'static [(&'static str, &'static [&'static str])],
}

/// What holds where a key is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// The settings are refused without it.
    Required,
    /// Nothing.
    Nothing,
    /// This value, as TOML writes it.
    Value(&'static str),
    /// A value that depends on something else, in words.
    Computed(&'static str),
}

impl Variants {
    /// The own keys of the variant of that name.
    pub fn own(&self, name: &str) -> Option<&'static [Key]> {
        self.of.iter().find(|(known, _)| *known == name).map(|(_, keys)| *keys)
    }
}

const fn key(name: &'static str, value: ValueType, default: DefaultValue, about: &'static str) -> Key {
    Key { name, value, default, about }
}

use DefaultValue::{Computed, Nothing, Required};
use ValueType::{Named, NamedVariant, Table, Variant};

/// The settings, from the top.
pub const SETTINGS: &[Key] = &[
    key("gateway", Table(GATEWAY), Nothing, "The gateway itself."),
    key("listen", Table(LISTEN), Nothing, "Where callers are listened to; at least one of unix and tcp."),
    key(
        "roles",
        Named(ROLE),
        Computed("everybody who reaches a door is admin"),
        "Roles: each table grants one.",
    ),
    key("limits", Table(LIMITS), Nothing, "How much is taken in, of all callers together and of each."),
    key("metrics", Table(METRICS), Nothing, "Metrics for Prometheus, and health."),
    key("store", Variant(&STORES), Nothing, "Where the gateway keeps its state."),
    key("election", Table(ELECTION), Nothing, "How gateways that share a store in etcd elect one of them."),
    key("audit", Table(AUDIT), Nothing, "The audit: what was asked, decided and done."),
    key("receipts", Table(RECEIPTS), Nothing, "The key that signs receipts."),
    key("log", Table(LOG), Nothing, "The log."),
    key("rules", Table(RULES), Nothing, "The numbers of the rules."),
    key("budget", Table(BUDGET), Nothing, "How much may be fenced."),
    key("templates", Named(TEMPLATE), Nothing, "Templates: each says once what many nodes have in common."),
    key("nodes", Named(NODE), Required, "Nodes, by host list."),
    key("groups", Named(GROUP), Nothing, "Groups of nodes, by name or label, and their rules."),
    key("releases", NamedVariant(&RELEASES), Nothing, "Releases, by name."),
];
