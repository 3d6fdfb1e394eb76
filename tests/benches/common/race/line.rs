//! The whole line: the engine over the embedded store, with ledger, identity and hold.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use picket_core::device::Grade;
use picket_core::event::Holder;
use picket_core::ids::{DeviceId, Incarnation, NodeId};
use picket_core::record::Then;
use picket_core::rules::Rules;
use picket_core::topology::{Level, Topology};
use picket_driver::PowerDriver;
use picket_driver_ipmi::IpmiDriver;
use picket_election::Single;
use picket_engine::{Engine, FenceCall, Logins, NoHooks, NodePlan, NodeSpec, Parts, Receipts, Unit, Until};
use picket_receipt::Keys;
use picket_store::EmbeddedStore;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::subject::Maker;
use crate::Wrong;

/// Ten thousand are looked at once, each of them stored.
const KNOWN_WITHIN: Duration = Duration::from_secs(180);

/// A gateway's inside, with one BMC a node.
pub struct Line {
    engine: Engine,
    /// All of them.
    pub nodes: Vec<NodeId>,
    drivers: Vec<Arc<IpmiDriver>>,
    stop: CancellationToken,
    work: JoinHandle<()>,
    _store: TempDir,
}

/// What a fence took.
pub struct Took {
    /// From the call to the proof, as the caller sees it.
    pub whole: Duration,
    /// Of it, from the first Off reading to the last: the dwell.
    pub dwell: Duration,
}

impl Line {
    /// Ready: every node was looked at once, has a session, and its identity is stored.
    pub async fn start(maker: &Maker, bmcs: &[SocketAddr], rules: &Rules) -> Result<Self, Wrong> {
        let context = maker.context().clone();
        let drivers: Vec<Arc<IpmiDriver>> =
            bmcs.iter().map(|bmc| maker.driver(*bmc, "administrator")).collect::<Result<_, _>>()?;
        let plans = drivers.iter().enumerate().map(|(index, driver)| plan(index, driver, rules));
        let plans: Vec<NodePlan> = plans.collect::<Result<_, _>>()?;
        let nodes = plans.iter().map(|plan| plan.id.clone()).collect();
        let directory = tempfile::tempdir()?;
        let mut bytes = [0; 10];
        (context.random)(&mut bytes);
        let fresh = Incarnation::mint(context.clock.wall(), bytes);
        let store = Arc::new(EmbeddedStore::open(&directory.path().join("picket.redb"), fresh)?);
        let engine = Engine::new(Parts {
            clock: context.clock,
            random: context.random,
            election: Arc::new(Single::new(store.clone())),
            store,
            hooks: Arc::new(NoHooks),
            audit: picket_audit::Audit::none(),
            receipts: Arc::new(Receipts::new(Keys::ephemeral("gateway", &|bytes| bytes.fill(7)))),
            metrics: Default::default(),
            rules: rules.clone(),
            budget: picket_core::budget::Budget::unlimited(),
            roles: picket_core::roles::Roles::of_this_machine(),
            nodes: plans,
            own: Arc::default(),
            twins: Arc::default(),
            parents: Arc::default(),
            simulated: false,
            check_at_start: true,
            logins: Logins::new(512),
            programs: Arc::new(Unit::of_programs(64)),
        });
        let stop = CancellationToken::new();
        let (running, over) = (engine.clone(), stop.clone());
        let work = tokio::spawn(async move {
            if let Err(error) = running.run(over).await {
                eprintln!("the engine ended: {error}");
            }
        });
        let line = Self { engine, nodes, drivers, stop, work, _store: directory };
        line.engine.until_leading().await;
        let known = line.nodes.iter().map(|node| line.known(node));
        tokio::time::timeout(KNOWN_WITHIN, try_join_all(known)).await??;
        Ok(line)
    }

    /// Waits until the first check of a node is through.
    async fn known(&self, node: &NodeId) -> Result<(), Wrong> {
        let mut view = self.engine.follow(node)?;
        view.wait_for(|view| !view.stored.record.learned.is_empty()).await?;
        Ok(())
    }

    /// One fence, until it is confirmed.
    pub async fn fence(&self, node: &NodeId) -> Result<Took, Wrong> {
        let words = |text: &str| text.to_owned();
        let holder = Holder {
            name: words("bench"),
            by: words("bench"),
            reason: words("a race"),
            then: Then::StayOff,
            by_person: false,
            asker: None,
        };
        let call = FenceCall {
            holder,
            key: None,
            min_grade: None,
            deadline: Some(Duration::from_secs(60)),
            not_after: None,
            expected_generation: None,
            set_aside: None,
            turn: None,
        };
        let start = Instant::now();
        let id = self.engine.fence(node, call).await?.fence();
        let mut follow = self.engine.follow(node)?;
        loop {
            let view = follow.borrow_and_update().clone();
            let (fence, outcome) = self.engine.outcome(&view, id, Until::Confirmed, None).await?;
            if let Some(outcome) = outcome {
                let whole = start.elapsed();
                let Some(evidence) = fence.and_then(|fence| fence.evidence) else {
                    return Err(format!("{node}: {outcome:?} without evidence").into());
                };
                return match evidence.devices.first() {
                    // Anything less would be another line than the one that is meant. Nobody but the BMCs says here whose machines they control.
                    Some(device) if evidence.grade >= Grade::Learned && !device.hold.is_empty() => {
                        Ok(Took { whole, dwell: device.lasted })
                    }
                    _ => Err(format!("{node}: poor evidence: {evidence:?}").into()),
                };
            }
            follow.changed().await?;
        }
    }

    /// Datagrams of all drivers so far, both ways.
    pub fn packets(&self) -> u64 {
        self.drivers
            .iter()
            .map(|driver| driver.packets())
            .map(|packets| packets.sent + packets.received)
            .sum()
    }

    /// Ends it.
    pub async fn end(self) -> Result<(), Wrong> {
        self.stop.cancel();
        Ok(self.work.await?)
    }
}

fn plan(index: usize, driver: &Arc<IpmiDriver>, rules: &Rules) -> Result<NodePlan, Wrong> {
    let bmc = DeviceId::new("bmc")?;
    let spec = driver.traits().spec(bmc.clone(), rules);
    let topology =
        Topology::new(vec![Level { devices: vec![spec] }]).map_err(|wrong| format!("{wrong:?}"))?;
    let driver: Arc<dyn PowerDriver> = driver.clone();
    let spec = NodeSpec::new(NodeId::new(&format!("n{index}"))?, topology);
    Ok(NodePlan { drivers: BTreeMap::from([(bmc, driver)]), ..NodePlan::of(spec) })
}
