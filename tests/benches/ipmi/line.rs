//! The whole line: the engine over the embedded store, with ledger, identity and hold, from the call to the proof.

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
use picket_engine::{Engine, FenceCall, NoHooks, NodePlan, Parts, Receipts, Until};
use picket_receipt::Keys;
use picket_store::EmbeddedStore;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::Wrong;
use crate::cost;
use crate::farm::Farm;
use crate::options::Options;
use crate::series::{Series, millis};
use crate::subject::Maker;

/// A gateway's inside, with one BMC a node.
pub struct Line {
    engine: Engine,
    nodes: Vec<NodeId>,
    drivers: Vec<Arc<IpmiDriver>>,
    stop: CancellationToken,
    work: JoinHandle<()>,
    _store: TempDir,
}

/// What a fence took.
struct Took {
    /// From the call to the proof, as the caller sees it.
    whole: Duration,
    /// Of it, from the first Off reading to the last: the dwell.
    dwell: Duration,
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
            nodes: plans,
            twins: Arc::default(),
            check_at_start: true,
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
        tokio::time::timeout(Duration::from_secs(60), try_join_all(known)).await??;
        Ok(line)
    }

    /// Waits until the first check of a node is through.
    async fn known(&self, node: &NodeId) -> Result<(), Wrong> {
        let mut view = self.engine.follow(node)?;
        view.wait_for(|view| !view.stored.record.learned.is_empty()).await?;
        Ok(())
    }

    /// One fence, until it is confirmed.
    async fn fence(&self, node: &NodeId) -> Result<Took, Wrong> {
        let words = |text: &str| text.to_owned();
        let holder =
            Holder { name: words("bench"), by: words("bench"), reason: words("a race"), then: Then::StayOff };
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
                    // Anything less would be another line than the one that is meant.
                    Some(device) if evidence.grade == Grade::Observed && !device.hold.is_empty() => {
                        Ok(Took { whole, dwell: device.lasted })
                    }
                    _ => Err(format!("{node}: poor evidence: {evidence:?}").into()),
                };
            }
            follow.changed().await?;
        }
    }

    fn packets(&self) -> u64 {
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
    Ok(NodePlan {
        id: NodeId::new(&format!("n{index}"))?,
        topology,
        drivers: BTreeMap::from([(bmc, driver)]),
        releases: Vec::new(),
        own_host: false,
        labels: BTreeMap::new(),
        groups: std::collections::BTreeSet::new(),
        liveness: None,
        drills: false,
        mark: String::new(),
    })
}

/// The numbers of many fences.
#[derive(Default)]
struct Table {
    alone: Series,
    alone_without_dwell: Series,
    together: Series,
    together_without_dwell: Series,
    fences: u32,
    cpu: Duration,
    packets: u64,
}

impl Table {
    /// A fresh engine: `alone` nodes one after another, then the rest at once.
    async fn round(&mut self, farm: &Farm, maker: &Maker, rules: &Rules, alone: usize) -> Result<(), Wrong> {
        farm.switch_on()?;
        let line = Line::start(maker, &farm.addresses(), rules).await?;
        let (cpu, packets) = (cost::own_cpu(), line.packets());
        let (singles, crowd) = line.nodes.split_at(alone);
        for node in singles {
            let took = line.fence(node).await?;
            self.alone.push(took.whole);
            self.alone_without_dwell.push(took.whole.saturating_sub(took.dwell));
        }
        let start = Instant::now();
        let all = try_join_all(crowd.iter().map(|node| line.fence(node))).await?;
        let whole = start.elapsed();
        let dwell = all.iter().map(|took| took.dwell).min().unwrap_or_default();
        self.together.push(whole);
        self.together_without_dwell.push(whole.saturating_sub(dwell));
        self.cpu += cost::own_cpu().saturating_sub(cpu);
        self.packets += line.packets() - packets;
        self.fences += line.nodes.len() as u32;
        farm.must_be_off("the engine")?;
        line.end().await
    }

    fn print(&self, name: &str, rules: &Rules, crowd: usize) {
        let head = format!("{name}: readings {}, dwell {:?}", rules.readings, rules.dwell);
        println!("  {head}");
        for (what, whole, without) in [
            ("one alone".to_owned(), &self.alone, &self.alone_without_dwell),
            (format!("{crowd} at once"), &self.together, &self.together_without_dwell),
        ] {
            println!(
                "    {what:<14} median {:>8} ms, p95 {:>8} ms; without the dwell median {:>7} ms, p95 {:>7} ms",
                millis(whole.median()),
                millis(whole.quantile(0.95)),
                millis(without.median()),
                millis(without.quantile(0.95)),
            );
        }
        let fences = self.fences.max(1);
        println!(
            "    a fence: {:.0} us of processor time, {:.1} packets",
            (self.cpu / fences).as_secs_f64() * 1e6,
            self.packets as f64 / f64::from(fences)
        );
    }
}

/// Prints the whole line beside the race, with its numbers and with the shipped ones.
pub async fn beside(options: &Options) -> Result<(), Wrong> {
    const ALONE: usize = 8;
    const CROWD: usize = 64;
    println!(
        "\nBESIDE: THE WHOLE LINE, from the call to the stored proof, sessions warm: intent, identity, hold, first look, \
         off,\n  readings, each stored before it is sent. Embedded store on {}",
        std::env::temp_dir().display()
    );
    let farm = Farm::start(ALONE + CROWD, true).await?;
    let maker = Maker::new()?;
    let shipped = Rules::default();
    // The judge takes an Off for recent as long as three dwells, and wants one that was asked for after the first of
    // them was answered: without any dwell it would prove nothing.
    let race = Rules { readings: 1, dwell: Duration::from_millis(20), ..shipped.clone() };
    for (name, rules, rounds) in [
        ("nearest to the race, which has no dwell", race, if options.quick { 1 } else { 5 }),
        ("as shipped", shipped, 1),
    ] {
        let mut table = Table::default();
        for _ in 0..rounds {
            table.round(&farm, &maker, &rules, ALONE).await?;
        }
        table.print(name, &rules, CROWD);
    }
    Ok(())
}
