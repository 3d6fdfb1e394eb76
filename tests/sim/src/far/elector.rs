//! An election over the simulated store: leadership and term are won in one step, and last as long as the lease.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::election::{Election, ElectionError, Known, Lease, Member, Won};
use picket_core::ids::Term;
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::Random;
use picket_engine::{Gate, gated};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::client::Client;
use super::quorum::{LIFE, Standing};
use crate::gate::Process;
use crate::trace::GatewayId;

/// The permit ends earlier than the lease: clocks do not run alike.
const LEASE: Duration = LIFE.saturating_sub(Duration::from_millis(500));
/// How often a lease is renewed.
const RENEWED: Duration = Duration::from_millis(1_667);
/// How often the election is looked at by who stands, or does not.
const WATCHED: Duration = Duration::from_secs(4);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// One process's part in the election.
#[derive(Debug)]
pub(crate) struct Elector {
    gateway: GatewayId,
    client: Arc<Client>,
    process: Arc<Process>,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    random: Random,
    /// What stood last, and may lead; also where its answer was not heard.
    campaign: Option<u64>,
    lease: Option<Arc<Lease>>,
    keeping: JoinSet<()>,
    /// What looks at the election all the time, as long as the process lives.
    watching: JoinSet<()>,
    aside: Option<String>,
    /// What was heard last, and when.
    seen: Option<(Standing, BootTime)>,
}

impl Elector {
    pub(crate) fn new(client: Arc<Client>, process: Arc<Process>, seed: u64) -> Arc<Self> {
        let held = Held {
            random: Random::new(seed),
            campaign: None,
            lease: None,
            keeping: JoinSet::new(),
            watching: JoinSet::new(),
            aside: None,
            seen: None,
        };
        let elector = Arc::new(Self { gateway: client.gateway, client, process, held: Mutex::new(held) });
        let (gate, watch): (Arc<dyn Gate>, _) = (elector.process.clone(), elector.clone());
        let watching = async move {
            loop {
                let _ = watch.look().await;
                sleep(WATCHED).await;
            }
        };
        elector.held.lock().watching.spawn(gated(Some(gate), watching));
        elector
    }

    /// How the election stands now.
    async fn look(&self) -> Option<Standing> {
        let (me, aside) = (self.gateway, self.held.lock().aside.clone());
        let standing = self.client.glance(move |quorum| quorum.standing(me, &aside)).await?.ok()?;
        self.held.lock().seen = Some((standing.clone(), self.now()));
        Some(standing)
    }

    /// The process is gone: nobody renews anything.
    pub(crate) fn die(&self) {
        let mut held = self.held.lock();
        held.keeping.abort_all();
        held.watching.abort_all();
    }

    /// Sends nothing any more, and gives up what it has, if the store can be told.
    async fn let_go(&self) {
        let campaign = {
            let mut held = self.held.lock();
            held.keeping.abort_all();
            if let Some(lease) = held.lease.take() {
                lease.end();
            }
            held.campaign.take()
        };
        if let Some(campaign) = campaign {
            let _ = self.client.call(move |quorum| quorum.give_up(campaign)).await;
        }
    }

    fn now(&self) -> BootTime {
        self.client.clock.boot()
    }

    /// One try; `None`: somebody else led, or nobody answers.
    async fn stand(&self) -> Option<(u64, Term, BootTime)> {
        let Standing { leader, term: read, .. } = self.look().await?;
        if let Some(leader) = leader {
            // What watches the leader's key: it is heard when it goes, and looked for when its time is over.
            self.client.quorum.vacant(leader.ends).await;
            return None;
        }
        let campaign = {
            let mut held = self.held.lock();
            let campaign = held.random.bits();
            held.campaign = Some(campaign);
            campaign
        };
        let (gateway, sent) = (self.gateway, self.now());
        match self.client.call(move |quorum| quorum.win(gateway, campaign, read)).await {
            Some(Ok(won)) => won.map(|term| (campaign, term, sent)),
            Some(Err(_)) => None,
            None => {
                // Not heard: it may have been won. The lease began after it was sent.
                let Standing { leader, term, .. } = self.look().await?;
                leader.filter(|leader| leader.campaign == campaign).map(|_| (campaign, term, sent))
            }
        }
    }

    fn keep(&self, campaign: u64, lease: Arc<Lease>) {
        let client = self.client.clone();
        let keep = async move {
            loop {
                sleep(RENEWED).await;
                let sent = client.clock.boot();
                match client.glance(move |quorum| quorum.keep_alive(campaign)).await {
                    Some(Ok(true)) => lease.renew(sent + LEASE),
                    Some(Ok(false)) => return lease.end(),
                    Some(Err(_)) | None => {}
                }
            }
        };
        let gate: Arc<dyn Gate> = self.process.clone();
        self.held.lock().keeping.spawn(gated(Some(gate), keep));
    }
}

fn member(gateway: GatewayId, aside: Option<String>) -> Member {
    Member { gateway: format!("g{gateway}"), aside, ..Member::default() }
}

#[async_trait]
impl Election for Elector {
    async fn campaign(&self) -> Result<Won, ElectionError> {
        self.let_go().await;
        loop {
            if let Some((campaign, term, sent)) = self.stand().await {
                let lease = Lease::until(sent + LEASE);
                self.held.lock().lease = Some(lease.clone());
                self.keep(campaign, lease.clone());
                return Ok(Won { term, incarnation: self.client.quorum.incarnation(), lease });
            }
            let spread = self.held.lock().random.between(Duration::ZERO, PAUSE);
            sleep(PAUSE + spread).await;
        }
    }

    async fn resign(&self) -> Result<(), ElectionError> {
        self.let_go().await;
        Ok(())
    }

    fn me(&self) -> Member {
        member(self.gateway, self.held.lock().aside.clone())
    }

    fn known(&self) -> Known {
        let wall = self.client.clock.wall();
        match &self.held.lock().seen {
            Some((standing, at)) if self.now().since(*at) < LIFE * 2 => match standing.leader {
                Some(leader) => Known::Leader(member(leader.gateway, None), leader.term),
                None => Known::Nobody(wall),
            },
            _ => Known::Away(wall, "the store was not heard lately".to_owned()),
        }
    }

    fn others(&self) -> Vec<Member> {
        let held = self.held.lock();
        let members = held.seen.iter().flat_map(|(standing, _)| &standing.members);
        members.filter(|(id, _)| *id != self.gateway).map(|(id, aside)| member(*id, aside.clone())).collect()
    }

    fn set_aside(&self, why: Option<String>) {
        self.held.lock().aside = why;
    }
}
