//! The checked whole.

use std::collections::{BTreeMap, BTreeSet};

use picket_core::budget::Budget;
use picket_core::ids::{NodeId, ReleaseId};
use picket_core::near::did_you_mean;
use picket_core::roles::Roles;
use picket_core::rules::Rules;

use crate::audit::AuditSettings;
use crate::budget;
use crate::device::DeviceSettings;
use crate::effective::Effective;
use crate::election::{self, ElectionSettings};
use crate::entry::Entry;
use crate::fault::Faults;
use crate::groups::{self, Grouping};
use crate::limits::{self, Limits};
use crate::listen::{self, Listen};
use crate::node::{self, NodeSettings, Nodes};
use crate::receipts::ReceiptSettings;
use crate::release::{self, ReleaseSettings};
use crate::secret;
use crate::sections::{self, Gateway, Log, MetricsSettings, StoreSettings};
use crate::sources::Sources;
use crate::table::{Findings, Table};
use crate::written::Written;

/// All settings of a gateway.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `[gateway]`.
    pub gateway: Gateway,
    /// `[listen]`.
    pub listen: Listen,
    /// `[limits]`.
    pub limits: Limits,
    /// `[roles]`; without it whoever is on this machine is admin.
    pub roles: Roles,
    /// `[store]`.
    pub store: StoreSettings,
    /// `[election]`.
    pub election: ElectionSettings,
    /// `[audit]`.
    pub audit: AuditSettings,
    /// `[receipts]`.
    pub receipts: ReceiptSettings,
    /// `[log]`.
    pub log: Log,
    /// `[metrics]`.
    pub metrics: MetricsSettings,
    /// `[rules]`: the keys, their defaults and least values are the fields of [`Rules`].
    pub rules: Rules,
    /// `[nodes]`, from their host lists and `[templates]`.
    pub nodes: BTreeMap<NodeId, NodeSettings>,
    /// `[budget]` and the budgets of the groups.
    pub budget: Budget,
    /// The groups of the nodes, by label and by `[groups]`, and the rules of each.
    pub groups: Grouping,
    /// `[releases]`.
    pub releases: BTreeMap<ReleaseId, ReleaseSettings>,
    /// The devices of the templates, and of nodes that could not be read, without what they lack: for their drivers to
    /// check what they have, so that faults of those that no node uses are told as well.
    pub samples: Vec<DeviceSettings>,
    /// What was set, key by key, of what a reload tells by key.
    pub written: Written,
}

impl Settings {
    /// Reads and checks everything.
    ///
    /// The drivers' and releasers' own tables are not checked: whoever makes those tells their faults with
    /// [`DeviceSettings::fault`](crate::DeviceSettings::fault) and [`Kinded::fault`](crate::Kinded::fault).
    pub fn load(sources: &Sources) -> Result<Self, Faults> {
        let (settings, faults) = Self::read(sources)?;
        if faults.is_empty() { Ok(settings) } else { Err(faults) }
    }

    /// What could be read, and all that is wrong with it: for whoever goes on to check the drivers' and releasers' own
    /// tables, so that everything is told at once. As long as there are faults nothing may run by it.
    ///
    /// # Errors
    /// A file cannot be read: what is missing would be told as faults.
    pub fn read(sources: &Sources) -> Result<(Self, Faults), Faults> {
        Ok(Self::check(sources.merge()?))
    }

    /// The same, and what is in force, key by key, with where it comes from.
    ///
    /// # Errors
    /// As of [`Settings::read`].
    pub fn read_effective(sources: &Sources) -> Result<(Self, Faults, Effective), Faults> {
        let merged = sources.merge()?;
        let (settings, faults) = Self::check(merged.clone());
        let effective = Effective::of(&merged, &settings);
        Ok((settings, faults, effective))
    }

    /// The same without the nodes, for whoever has made of them what there was to be made: ten thousand are most of the settings.
    #[must_use]
    pub fn without_nodes(self) -> Self {
        Self { nodes: BTreeMap::new(), samples: Vec::new(), ..self }
    }

    fn check(merged: Entry) -> (Self, Faults) {
        let log = Findings::default();
        let written = Written::of(&merged);
        secret::refuse_hidden(&merged, &log);
        let mut top = Table::of(&log, merged);
        let gateway = sections::gateway(top.table("gateway"));
        let listen = listen::read(top.table("listen"));
        let limits = limits::read(top.table("limits"));
        let store = sections::store(top.table("store"));
        let elected = top.has("election");
        let election = election::read(top.table("election"), elected, &store);
        let audit = crate::audit::read(top.table("audit"), &store);
        let receipts = crate::receipts::read(top.table("receipts"), &store);
        let logging = sections::log(top.table("log"));
        let metrics = sections::metrics(top.table("metrics"));
        let rules = crate::rules::read(top.table("rules"));
        let releases = release::releases(&mut top);
        let known: BTreeSet<ReleaseId> = releases.keys().cloned().collect();
        let mut samples = Vec::new();
        let templates = node::templates(&mut top, &known, &rules, &mut samples);
        let nodes = Nodes { templates: &templates, releases: &known, rules: &rules, log: &log }
            .read(&mut top, &mut samples);
        let groups = groups::read(&mut top, &nodes);
        let mut budget = budget::read(top.table("budget"), &groups, nodes.len());
        if let StoreSettings::Etcd(etcd) = &store {
            for (member, node) in &etcd.members {
                if let Some(node) = node.as_ref().filter(|node| !nodes.contains_key(node)) {
                    let offer = did_you_mean(node.as_str(), nodes.keys().map(NodeId::as_str));
                    let message = format!("{member}: there is no node {node} in these settings{offer}");
                    top.table("store").fault("members", message);
                }
            }
            budget.quorum.members.clone_from(&etcd.members);
        }
        let roles = crate::roles::read(&mut top, &listen, &nodes);
        if let Some(own) = gateway.node.as_ref().filter(|own| !nodes.contains_key(own)) {
            let offer = did_you_mean(own.as_str(), nodes.keys().map(NodeId::as_str));
            top.table("gateway").fault("node", format!("there is no node {own} in these settings{offer}"));
        }
        if let Some(why) = gateway.contradicts(&nodes) {
            top.table("gateway").fault("kubernetes_node", why);
        }
        top.done();
        let faults = Faults::new(log.into_faults());
        let settings = Self {
            gateway,
            listen,
            limits,
            roles,
            store,
            election,
            audit,
            receipts,
            log: logging,
            metrics,
            rules,
            nodes,
            budget,
            groups,
            releases,
            samples,
            written,
        };
        (settings, faults)
    }
}
