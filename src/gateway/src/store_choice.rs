//! The store, and the election that belongs to it: of this gateway alone, or shared with others in etcd.

use std::sync::Arc;

use picket_config::{Settings, StoreSettings};
use picket_core::election::{Election, Member};
use picket_core::ids::Incarnation;
use picket_core::store::Store;
#[cfg(feature = "etcd")]
use picket_core::store::StoreError;
use picket_driver::Context;
use picket_election::Single;
use picket_engine::NodePlan;
use picket_metrics::Metrics;
use picket_store::{EmbeddedStore, MemoryStore};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::build;
use crate::failure::Failure;
use crate::measured::{Measured, Unanswered};

/// Where what is decided stands, and who decides.
pub(crate) struct StoreChoice {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) election: Arc<dyn Election>,
    /// The writes to it that hang.
    pub(crate) unanswered: Unanswered,
}

/// The oldest version that reads what this one writes: an older gateway that shares the store follows, and does not lead.
#[cfg(feature = "etcd")]
const LEAST_VERSION: &str = "0.1.0";

/// The store and the election of these settings. A store in etcd is not asked yet: the gateway starts while it is away.
pub(crate) fn open(
    settings: &Settings,
    context: &Context,
    metrics: &Metrics,
) -> Result<StoreChoice, Failure> {
    let mut bytes = [0; 10];
    (context.random)(&mut bytes);
    let fresh = Incarnation::mint(context.clock.wall(), bytes);
    let inner: Arc<dyn Store> = match &settings.store {
        StoreSettings::Memory => {
            tracing::warn!("the store is in memory: with this process it forgets which nodes are fenced");
            Arc::new(MemoryStore::new(fresh)?)
        }
        StoreSettings::Embedded { path } => Arc::new(EmbeddedStore::open(path, fresh)?),
        StoreSettings::Etcd(etcd) => return shared(etcd, settings, context, metrics),
    };
    Ok(measured(inner, metrics, |store| Arc::new(Single::new(store).of(me(settings)))))
}

#[cfg(feature = "etcd")]
fn shared(
    etcd: &picket_config::EtcdSettings,
    settings: &Settings,
    context: &Context,
    metrics: &Metrics,
) -> Result<StoreChoice, Failure> {
    let etcd = picket_etcd::Etcd::new(etcd.clone(), context.clock.clone(), context.random.clone());
    let election = etcd.election(picket_etcd::Candidate {
        me: me(settings),
        least_version: picket_etcd::Version::parse(LEAST_VERSION),
        take_over_settings: settings.election.take_over_settings,
        lease: settings.election.lease,
    });
    Ok(measured(Arc::new(etcd.store()), metrics, |_| Arc::new(election)))
}

/// Looks at a store in etcd as a start would find it, and makes none. `Some`: it cannot be asked now, and why.
///
/// # Errors
/// Nobody leads over it until a person mends it.
#[cfg(feature = "etcd")]
pub(crate) async fn check(
    etcd: &picket_config::EtcdSettings,
    context: &Context,
) -> Result<Option<String>, Failure> {
    let etcd = picket_etcd::Etcd::new(etcd.clone(), context.clock.clone(), context.random.clone());
    match etcd.check().await {
        Ok(_) => Ok(None),
        Err(error @ (StoreError::Moved(_) | StoreError::Damaged(_))) => Err(error.into()),
        Err(error) => Ok(Some(error.to_string())),
    }
}

#[cfg(not(feature = "etcd"))]
pub(crate) async fn check(_: &picket_config::EtcdSettings, _: &Context) -> Result<Option<String>, Failure> {
    Err(Failure::Built("etcd"))
}

#[cfg(not(feature = "etcd"))]
fn shared(
    _: &picket_config::EtcdSettings,
    _: &Settings,
    _: &Context,
    _: &Metrics,
) -> Result<StoreChoice, Failure> {
    Err(Failure::Built("etcd"))
}

fn measured(
    inner: Arc<dyn Store>,
    metrics: &Metrics,
    election: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Election>,
) -> StoreChoice {
    let unanswered = Unanswered::default();
    let store: Arc<dyn Store> =
        Arc::new(Measured { inner, metrics: metrics.clone(), unanswered: unanswered.clone() });
    StoreChoice { election: election(store.clone()), store, unanswered }
}

/// This gateway, as others know it.
fn me(settings: &Settings) -> Member {
    Member {
        gateway: settings.gateway.name.clone(),
        endpoints: settings.election.advertise.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        aside: None,
    }
}

/// A digest of what all gateways of a fleet must have alike: nodes, devices, releases, rules, budget, and who may what. What is one gateway's own
/// (where it listens, which node carries it) is no part of it, nor is what stands in the files that settings name.
pub(crate) fn digest(settings: &Settings, plans: &[NodePlan]) -> String {
    // As one object of JSON, its keys in order, and one node in memory at a time: ten thousand would take three hundred megabytes.
    let mut nodes: Vec<(&str, &NodePlan)> = plans.iter().map(|plan| (plan.id.as_str(), plan)).collect();
    nodes.sort_by_key(|(name, _)| *name);
    let mut digest = Sha256::new();
    digest.update(format!("{{\"budget\":{},\"nodes\":{{", json!(format!("{:?}", settings.budget))));
    let mut between = "";
    for (name, plan) in nodes {
        let Some(node) = settings.nodes.get(&plan.id) else { continue };
        digest.update(format!("{between}{}:{}", json!(name), build::alike(settings, node, plan)));
        between = ",";
    }
    digest.update(format!("}},\"rules\":{}}}", json!(format!("{:?}", settings.rules))));
    // Beside the others, so that a fleet that was led before roles counted is known by what it was led by.
    format!("{}+{}", hex(digest), hex(Sha256::new_with_prefix(settings.roles.everywhere())))
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
