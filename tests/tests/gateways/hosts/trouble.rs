//! What happens to gateways, etcd and the network, at its time; and that each misfortune is over at the end.

use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, SystemTime};

use picket_tests::peers::{Cut, ETCD_CLIENT_PORT};
use picket_tests::{Dice, Gateway, PeerError, Result};
use tokio::time::{Instant, sleep, sleep_until};

use crate::hosts::plan::{From, Misfortune, Plan, Way, Whom, frozen};
use crate::hosts::scene::Scene;

/// How often gateways are looked at: whether one killed or stopped itself.
const PACE: Duration = Duration::from_millis(10);

/// A misfortune that was.
#[derive(Clone, Debug)]
pub struct Met {
    pub what: String,
    pub from: SystemTime,
    /// `None`: it is not over.
    pub to: Option<SystemTime>,
    /// The address of the leader that it took away, for the time until another one acts.
    pub deposed: Option<Ipv4Addr>,
    /// How long a leader that was told to stop took to end.
    pub ended_in: Option<Duration>,
}

/// What is to be done at its time.
#[derive(Debug)]
enum Action {
    Begin(Misfortune),
    /// The misfortune of that number is over.
    End(usize, Vec<Remedy>),
}

#[derive(Debug)]
enum Remedy {
    StartGateway(usize),
    StartEtcd(usize),
    Thaw(usize),
    Mend(Vec<Cut>),
}

/// The agenda, and what was met so far.
#[derive(Debug)]
pub struct Trouble {
    agenda: Vec<(Instant, Action)>,
    pub met: Vec<Met>,
    /// Gateways whose death or stop is somebody's doing already.
    down: [bool; 3],
    frozen: [bool; 3],
    dice: Dice,
}

impl Trouble {
    /// The plan's misfortunes, counted from now.
    pub fn new(plan: &Plan, dice: Dice) -> Self {
        let now = Instant::now();
        let agenda = plan.misfortunes.iter().map(|(at, what)| (now + *at, Action::Begin(*what))).collect();
        Self { agenda, met: Vec::new(), down: [false; 3], frozen: [false; 3], dice }
    }

    /// Does what is due, or waits a moment. Dropped in the middle, it leaves nothing that `heal` does not find.
    pub async fn step(&mut self, scene: &mut Scene) -> Result<()> {
        self.watch(scene)?;
        let due = self.agenda.iter().map(|(at, _)| *at).min();
        let wake = Instant::now() + PACE;
        if let Some(due) = due.filter(|due| *due <= wake) {
            sleep_until(due).await;
            if let Some(place) = self.agenda.iter().position(|(at, _)| *at <= due) {
                let (_, action) = self.agenda.remove(place);
                self.perform(scene, action).await?;
            }
            return Ok(());
        }
        sleep(PACE).await;
        Ok(())
    }

    /// Everything is over now.
    pub async fn heal(&mut self, scene: &mut Scene) -> Result<()> {
        self.agenda.retain(|(_, action)| matches!(action, Action::End(..)));
        // One that stops or kills itself while the rest is healed is found, too.
        loop {
            self.watch(scene)?;
            let Some((_, action)) = self.agenda.pop() else { break };
            self.perform(scene, action).await?;
        }
        // One that was told to stop as the story ended: nobody waited for it any more.
        for n in 0..scene.gateways.len() {
            if self.down[n] {
                scene.gateways[n].process()?.wait(Duration::from_secs(30)).await?;
                self.remedy(scene, Remedy::StartGateway(n))?;
            }
        }
        Ok(())
    }

    /// Finds gateways that killed or stopped themselves at a named point.
    fn watch(&mut self, scene: &mut Scene) -> Result<()> {
        for n in 0..scene.gateways.len() {
            if self.down[n] {
                continue;
            }
            let log = |scene: &Scene| scene.gateways[n].log();
            let process = scene.gateways[n].process()?;
            if let Some(status) = process.ended() {
                if status.signal() != Some(9) {
                    let (program, status) = (format!("g{n}"), status.to_string());
                    return Err(PeerError::Ended { program, status, output: log(scene) });
                }
                self.down[n] = true;
                let time = self.dice.time(Duration::from_secs(5));
                self.meet("killed at a named point", time, vec![Remedy::StartGateway(n)], address(scene, n));
            } else if !self.frozen[n] && process.is_frozen() {
                self.frozen[n] = true;
                let time = frozen(&mut self.dice);
                self.meet("stopped at a named point", time, vec![Remedy::Thaw(n)], address(scene, n));
            }
        }
        Ok(())
    }

    fn meet(&mut self, what: &str, time: Duration, remedies: Vec<Remedy>, deposed: Option<Ipv4Addr>) {
        let from = SystemTime::now();
        self.met.push(Met { what: what.to_owned(), from, to: None, deposed, ended_in: None });
        self.agenda.push((Instant::now() + time, Action::End(self.met.len() - 1, remedies)));
    }

    async fn perform(&mut self, scene: &mut Scene, action: Action) -> Result<()> {
        match action {
            Action::Begin(misfortune) => self.begin(scene, misfortune).await,
            Action::End(which, remedies) => {
                for remedy in remedies {
                    self.remedy(scene, remedy)?;
                }
                self.met[which].to = Some(SystemTime::now());
                Ok(())
            }
        }
    }

    fn remedy(&mut self, scene: &mut Scene, remedy: Remedy) -> Result<()> {
        match remedy {
            Remedy::StartGateway(n) => {
                scene.gateways[n].launch(&[])?;
                self.down[n] = false;
            }
            Remedy::StartEtcd(n) => scene.etcd.member(n).begin_again()?,
            Remedy::Thaw(n) => {
                scene.gateways[n].process()?.thaw();
                self.frozen[n] = false;
            }
            Remedy::Mend(cuts) => drop(cuts),
        }
        Ok(())
    }

    async fn begin(&mut self, scene: &mut Scene, misfortune: Misfortune) -> Result<()> {
        let leads = scene.leads().await;
        // Where nobody leads it hits somebody.
        let anybody = leads.unwrap_or_else(|| usize::try_from(self.dice.throw(3)).unwrap_or_default());
        let (word, time) = (misfortune.word(), misfortune.time());
        let hit = match misfortune {
            Misfortune::Kill(Whom::Number(n), _) | Misfortune::Freeze(Whom::Number(n), _) => n,
            _ => anybody,
        };
        // Of one that is down already nothing more can be taken.
        let free = !self.down[hit] && !self.frozen[hit];
        let deposed = address(scene, hit).filter(|_| leads == Some(hit));
        match misfortune {
            Misfortune::Kill(..) if free => {
                self.kill(scene, hit)?;
                self.meet(&word, time, vec![Remedy::StartGateway(hit)], deposed);
            }
            Misfortune::Freeze(..) if free => {
                scene.gateways[hit].process()?.freeze();
                self.frozen[hit] = true;
                self.meet(&word, time, vec![Remedy::Thaw(hit)], deposed);
            }
            Misfortune::Terminate(_) if free => {
                self.down[hit] = true;
                let (from, began) = (SystemTime::now(), Instant::now());
                let status = scene.gateways[hit].process()?.terminate(Duration::from_secs(30)).await?;
                self.meet(&word, time, vec![Remedy::StartGateway(hit)], deposed);
                if let Some(met) = self.met.last_mut() {
                    (met.from, met.ended_in) = (from, Some(began.elapsed()));
                }
                if !status.success() {
                    let (program, output) = (format!("g{hit}, told to stop"), scene.gateways[hit].log());
                    return Err(PeerError::Ended { program, status: status.to_string(), output });
                }
            }
            Misfortune::KillBothLeaders(_) if free => {
                let Some(member) = scene.etcd.leader().await else { return Ok(()) };
                self.kill(scene, hit)?;
                scene.etcd.member(member).process().kill();
                self.meet(&word, time, vec![Remedy::StartGateway(hit), Remedy::StartEtcd(member)], deposed);
            }
            Misfortune::KillEtcd(_) => {
                let Some(member) = scene.etcd.leader().await else { return Ok(()) };
                scene.etcd.member(member).process().kill();
                self.meet(&word, time, vec![Remedy::StartEtcd(member)], None);
            }
            Misfortune::Cut(from, way, _) => {
                let cuts = cut(scene, hit, from, way)?;
                self.meet(&word, time, vec![Remedy::Mend(cuts)], None);
            }
            _ => {}
        }
        Ok(())
    }

    fn kill(&mut self, scene: &mut Scene, n: usize) -> Result<()> {
        self.down[n] = true;
        scene.gateways[n].process()?.kill();
        Ok(())
    }
}

fn address(scene: &Scene, n: usize) -> Option<Ipv4Addr> {
    (n < scene.gateways.len()).then(|| scene.network.host(n).address())
}

fn cut(scene: &Scene, hit: usize, from: From, way: Way) -> Result<Vec<Cut>> {
    let own = scene.network.host(hit);
    let (to_it, from_it) = (way != Way::FromIt, way != Way::ToIt);
    let mut cuts = Vec::new();
    let far: Vec<usize> = match from {
        From::Etcd => {
            if to_it {
                cuts.push(own.no_answers_from(ETCD_CLIENT_PORT)?);
            }
            if from_it {
                cuts.push(own.no_requests_to(ETCD_CLIENT_PORT)?);
            }
            Vec::new()
        }
        From::Bmcs => vec![3],
        From::Others => (0..3).filter(|other| *other != hit).collect(),
    };
    for other in far {
        let other = scene.network.host(other);
        if to_it {
            cuts.push(own.deaf_to(other)?);
        }
        if from_it {
            cuts.push(other.deaf_to(own)?);
        }
    }
    Ok(cuts)
}

/// Whether a gateway of the scene says that it stands frozen.
pub fn is_frozen(gateway: &mut Gateway) -> bool {
    gateway.process().is_ok_and(|process| process.is_frozen())
}
