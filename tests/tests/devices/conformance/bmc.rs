//! What the suite needs of a BMC that is spoken to over IPMI, by whichever program: OpenIPMI's, pyghmi's, picket-fleet's.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Identity;
use picket_driver::conformance::Trouble;
use picket_driver_sim::{Act, Fault, Verb};
use picket_tests::peers::{Bmc17, IpmiSim, Knob};

use crate::conformance::scene::{IDLE, Simulated};

/// A BMC, and its truth.
#[async_trait]
pub trait Peer: Send + Sync {
    fn address(&self) -> SocketAddr;
    fn is_on(&self) -> bool;
    fn set_power(&self, on: bool);
    /// Commands that it carried out.
    fn commands(&self) -> u64;
    /// `None`: that is the network's to do.
    async fn hurt(&self, trouble: Trouble) -> Option<bool>;
    fn mend(&self);
    /// What it says of itself.
    fn identity(&self) -> Option<Identity>;
    fn idle_limit(&self) -> Duration;
    fn sessions(&self) -> Option<u64> {
        None
    }
    fn hold_state(&self) -> Option<String> {
        None
    }
}

fn of_guid(guid: String) -> Option<Identity> {
    Some(Identity { uuid: Some(guid), serial: None })
}

/// OpenIPMI's, which is restarted by killing it.
pub struct Theirs(pub tokio::sync::Mutex<IpmiSim>, Fixed);

/// What of it does not change.
struct Fixed {
    address: SocketAddr,
    guid: String,
    truth: picket_tests::peers::Truth,
}

impl Theirs {
    pub async fn start() -> Self {
        let sim = IpmiSim::builder().holds().start().await.expect("ipmi_sim runs");
        let fixed = Fixed { address: sim.address(), guid: sim.guid(), truth: sim.truth() };
        Self(tokio::sync::Mutex::new(sim), fixed)
    }

    fn sim<T>(&self, look: impl FnOnce(&IpmiSim) -> T) -> T {
        // Held over an await by its restart alone, and nothing is asked meanwhile.
        look(&self.0.try_lock().expect("it is not being restarted"))
    }
}

#[async_trait]
impl Peer for Theirs {
    fn address(&self) -> SocketAddr {
        self.1.address
    }

    fn is_on(&self) -> bool {
        (self.1.truth)()
    }

    fn set_power(&self, on: bool) {
        self.sim(|sim| sim.press(on)).expect("its state can be written");
    }

    fn commands(&self) -> u64 {
        self.sim(|sim| sim.commands().len() + sim.hold_log().len()) as u64
    }

    async fn hurt(&self, trouble: Trouble) -> Option<bool> {
        match trouble {
            Trouble::Restart => self.0.lock().await.start_again().await.expect("it starts again"),
            Trouble::SlowFall(time) => self.sim(|sim| sim.set(Knob::OffDelay(time))).expect("a knob"),
            Trouble::Refuses => self.sim(|sim| sim.set(Knob::Fail)).expect("a knob"),
            // It always answers, takes an off twice, and has one machine.
            Trouble::Nonsense
            | Trouble::Missing
            | Trouble::Transition
            | Trouble::Gone
            | Trouble::AlreadyIsError
            | Trouble::OtherMachine => return Some(false),
            _ => return None,
        }
        Some(true)
    }

    fn mend(&self) {
        for knob in [Knob::OffDelay(Duration::ZERO), Knob::Fail] {
            self.sim(|sim| sim.clear(knob)).expect("a knob");
        }
    }

    fn identity(&self) -> Option<Identity> {
        of_guid(self.1.guid.clone())
    }

    fn idle_limit(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn hold_state(&self) -> Option<String> {
        let hold = self.sim(IpmiSim::hold).expect("it holds");
        Some(
            ["policy", "buttons", "watchdog_use", "watchdog_action"]
                .map(|name| hold.get(name).to_string())
                .join(" "),
        )
    }
}

/// pyghmi's.
pub struct Pyghmi(pub tokio::sync::Mutex<Bmc17>, Fixed);

impl Pyghmi {
    pub async fn start() -> Self {
        let bmc = Bmc17::start().await.expect("bmc17.py runs");
        // The first three fields of what Get System GUID says are swapped.
        let digits = uuid::Uuid::parse_str(&bmc.guid()).expect("a GUID").to_bytes_le();
        let guid = uuid::Uuid::from_bytes(digits).simple().to_string();
        let fixed = Fixed { address: bmc.address(), guid, truth: bmc.truth() };
        Self(tokio::sync::Mutex::new(bmc), fixed)
    }

    fn bmc<T>(&self, look: impl FnOnce(&Bmc17) -> T) -> T {
        look(&self.0.try_lock().expect("it is not being restarted"))
    }
}

#[async_trait]
impl Peer for Pyghmi {
    fn address(&self) -> SocketAddr {
        self.1.address
    }

    fn is_on(&self) -> bool {
        (self.1.truth)()
    }

    fn set_power(&self, on: bool) {
        self.bmc(|bmc| bmc.press(on)).expect("its state can be written");
    }

    fn commands(&self) -> u64 {
        let power = |what: &String| what.starts_with("on") || what.starts_with("off");
        self.bmc(Bmc17::commands).into_iter().filter(power).count() as u64
    }

    async fn hurt(&self, trouble: Trouble) -> Option<bool> {
        match trouble {
            Trouble::Restart => self.0.lock().await.start_again().await.expect("it starts again"),
            Trouble::SlowFall(time) => self.bmc(|bmc| bmc.set(Knob::OffDelay(time))).expect("a knob"),
            Trouble::AlreadyIsError => self.bmc(|bmc| bmc.set(Knob::RefuseAgain)).expect("a knob"),
            Trouble::Refuses | Trouble::RepeatRefused => {
                self.bmc(|bmc| bmc.set(Knob::Fail)).expect("a knob");
            }
            Trouble::Nonsense
            | Trouble::Missing
            | Trouble::Transition
            | Trouble::Gone
            | Trouble::OtherMachine => {
                return Some(false);
            }
            _ => return None,
        }
        Some(true)
    }

    fn mend(&self) {
        for knob in [Knob::OffDelay(Duration::ZERO), Knob::RefuseAgain, Knob::Fail] {
            self.bmc(|bmc| bmc.clear(knob)).expect("a knob");
        }
    }

    fn identity(&self) -> Option<Identity> {
        of_guid(self.1.guid.clone())
    }

    fn idle_limit(&self) -> Duration {
        Duration::from_secs(60)
    }
}

/// A simulated one is asked by its world, over whichever protocol.
#[async_trait]
impl Peer for Simulated {
    fn address(&self) -> SocketAddr {
        self.bmc.address()
    }

    fn is_on(&self) -> bool {
        self.bmc.is_on()
    }

    fn set_power(&self, on: bool) {
        let verb = if on { Verb::On } else { Verb::Off };
        self.bmc.happen(Act::Foreign { machine: "n1".to_owned(), verb });
    }

    fn commands(&self) -> u64 {
        let received = self.bmc.world().received(self.device, self.bmc.now());
        received.offs + received.ons + received.holds
    }

    async fn hurt(&self, trouble: Trouble) -> Option<bool> {
        let fault = match trouble {
            Trouble::Restart => {
                self.bmc.restart(Duration::ZERO, false);
                return Some(true);
            }
            Trouble::Nonsense => Fault::SaysNonsense,
            Trouble::Missing => Fault::SaysNothing,
            Trouble::SlowFall(time) => Fault::OffTakes { least: time, most: time },
            Trouble::AlreadyIsError => Fault::AlreadyIsError,
            Trouble::Refuses => Fault::OffRefused,
            Trouble::SlowAnswers(by) => Fault::Slow(by),
            Trouble::RepeatRefused => Fault::AlreadyIsRefused,
            Trouble::OtherMachine => Fault::SaysIdentity(another()),
            Trouble::Transition | Trouble::Gone => return Some(false),
            _ => return None,
        };
        let other = matches!(fault, Fault::SaysIdentity(_));
        self.bmc.fault(fault);
        *self.is_another.lock() = other;
        Some(true)
    }

    fn mend(&self) {
        self.bmc.mend();
        *self.is_another.lock() = false;
    }

    fn identity(&self) -> Option<Identity> {
        let is_another = *self.is_another.lock();
        Some(if is_another { another() } else { self.bmc.world().identity("n1").clone() })
    }

    fn idle_limit(&self) -> Duration {
        IDLE
    }

    fn sessions(&self) -> Option<u64> {
        let now = self.bmc.now();
        Some(self.bmc.world().sessions(self.device, now) as u64)
    }

    fn hold_state(&self) -> Option<String> {
        let held = self.bmc.world().hold("n1");
        Some(format!("{:?}, button locked: {}", held.restore, held.button_locked))
    }
}

/// What a machine says that is not the one.
fn another() -> Identity {
    Identity { uuid: Some("0f1e2d3c4b5a69788796a5b4c3d2e1f0".to_owned()), serial: Some("another".to_owned()) }
}
