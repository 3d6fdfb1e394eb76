//! A simulated device, as the suite wants it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use picket_core::device::Identity;
use picket_core::time::{BootTime, Clock};
use picket_driver::conformance::{Heard, Owners, Storage, Subject, Trouble, VolumeTrouble};
use picket_driver::{PowerDriver, VolumeAt};
use picket_driver_sim::{
    Act, Disk, Fault, Moved, SharedWorld, SimClock, SimDriver, SimOptions, Stuck, Verb, World,
};

/// After how long the devices end an idle session.
const IDLE: Duration = Duration::from_secs(60);

pub struct Simulated {
    world: SharedWorld,
    clock: Arc<SimClock>,
    device: &'static str,
    has_sessions: bool,
    names_sessions: bool,
    has_volumes: bool,
    told: Mutex<Told>,
}

/// What is told of the troubles that hold.
#[derive(Default)]
struct Told {
    lost_at: Option<BootTime>,
    another: Option<Identity>,
    /// Volumes that were made.
    volumes: u32,
}

/// From which the machine runs.
const ROOT: &str = "vol-root";
/// How old a detach may be that is taken.
const DETACH: Duration = Duration::from_secs(60);

impl Simulated {
    pub fn new(device: &'static str, build: impl FnOnce(&mut World)) -> Self {
        let mut world = World::new(3);
        world.add_machine("n1").add_host("n1", "bmc").add_supply("n1", "outlet");
        world.set_hold_up("n1", Duration::ZERO).set_sessions(device, 4, IDLE);
        build(&mut world);
        let (clock, told) = (Arc::new(SimClock::new()), Mutex::default());
        let (has_sessions, names_sessions, has_volumes) = (true, false, false);
        Self { world: world.shared(), clock, device, has_sessions, names_sessions, has_volumes, told }
    }

    /// One without sessions: every packet stands alone.
    pub fn sessionless(device: &'static str) -> Self {
        let subject = Self::new(device, |world| {
            world.set_sessionless(device);
        });
        Self { has_sessions: false, ..subject }
    }

    /// One whose sessions others can end by their names.
    pub fn named(device: &'static str) -> Self {
        // A successor needs a session of its own, and some checks leave theirs open.
        let subject = Self::new(device, |world| {
            world.set_sessions(device, 16, IDLE);
        });
        Self { names_sessions: true, ..subject }
    }

    /// One whose machine has volumes, beside another machine that may have them.
    pub fn with_volumes() -> Self {
        let root = Disk { root: true, ..Disk::default() };
        let subject = Self::new("bmc", |world| {
            // Some checks leave their session open.
            world.set_sessions("bmc", 16, IDLE);
            world.add_machine("n2").add_host("n2", "other").add_volume("n1", ROOT, "/dev/vda", root);
        });
        Self { has_volumes: true, ..subject }
    }

    /// The driver, as it is and not as the trait has it.
    pub fn sim(&self) -> SimDriver {
        SimDriver::new(&self.world, self.device, &self.options())
    }

    /// One for the other machine, which is nobody's to use here.
    pub fn sim_of_another(&self) -> SimDriver {
        SimDriver::new(&self.world, "other", &self.options())
    }

    fn options(&self) -> SimOptions {
        let volumes = self.has_volumes.then_some(DETACH);
        SimOptions { names_sessions: self.names_sessions, volumes, ..SimOptions::default() }
    }

    fn is_outlet(&self) -> bool {
        self.device == "outlet"
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }
}

#[async_trait]
impl Subject for Simulated {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        Arc::new(self.sim())
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    async fn is_on(&self) -> bool {
        self.world().truth("n1", self.clock.boot())
    }

    async fn set_power(&self, on: bool) {
        let verb = if on { Verb::On } else { Verb::Off };
        let act = match self.device {
            "outlet" => Act::ForeignOutlet { outlet: "outlet".to_owned(), verb },
            _ => Act::Foreign { machine: "n1".to_owned(), verb },
        };
        self.world().happen(self.clock.boot(), act);
    }

    async fn commands(&self) -> Option<u64> {
        let received = self.world().received(self.device, self.clock.boot());
        Some(received.offs + received.ons + received.holds)
    }

    async fn hurt(&self, trouble: Trouble) -> bool {
        let fault = match trouble {
            Trouble::Silence => Fault::Silent,
            Trouble::WrongCredentials => Fault::WrongPassword,
            Trouble::Nonsense | Trouble::Transition => Fault::SaysNothing,
            // Its answers leave nothing out, and there is always a machine behind it.
            Trouble::Missing | Trouble::Gone => return false,
            // It has no paths, and a session's number is all that one needs.
            Trouble::Redirects | Trouble::UselessLogins => return false,
            // What it says is no text: half of a packet is none.
            Trouble::AnswersLost | Trouble::CutAnswers => Fault::AnswerLost { times: u32::MAX },
            Trouble::FirstCopyLost => {
                // It arrives half a millisecond after it was sent.
                self.told.lock().lost_at = Some(self.clock.boot() + Duration::from_millis(1));
                Fault::RequestLost { times: 1 }
            }
            // Nothing ends a late copy where there are no sessions.
            Trouble::LateCopies(_) if !self.has_sessions => return false,
            Trouble::LateCopies(after) => Fault::Twice { verb: Verb::Off, after, times: u32::MAX },
            Trouble::Refuses => Fault::OffRefused,
            Trouble::SlowAnswers(by) => Fault::Slow(by),
            Trouble::RepeatRefused => Fault::AlreadyIsRefused,
            // An outlet does not know what hangs on it.
            Trouble::OtherMachine if self.is_outlet() => return false,
            Trouble::OtherMachine => {
                let another = Identity { uuid: Some("0f".repeat(16)), serial: Some("another".to_owned()) };
                self.told.lock().another = Some(another.clone());
                Fault::SaysIdentity(another)
            }
            Trouble::SlowFall(time) => Fault::OffTakes { least: time, most: time },
            Trouble::AlreadyIsError => Fault::AlreadyIsError,
            Trouble::Doubled => Fault::Doubled,
            Trouble::Restart => {
                let restart = Act::RestartBmc {
                    device: self.device.to_owned(),
                    down: Duration::ZERO,
                    estranged: false,
                };
                self.world().happen(self.clock.boot(), restart);
                return true;
            }
        };
        self.world().fault(self.device, fault);
        true
    }

    async fn mend(&self) {
        self.world().mend(self.device);
        let volumes = self.told.lock().volumes;
        *self.told.lock() = Told { volumes, ..Told::default() };
        self.of_volumes(Duration::ZERO, None);
    }

    fn storage(&self) -> Option<&dyn Storage> {
        self.has_volumes.then_some(self as &dyn Storage)
    }

    async fn sessions(&self) -> Option<u64> {
        let open = self.world().sessions(self.device, self.clock.boot()) as u64;
        self.has_sessions.then_some(open)
    }

    fn idle_limit(&self) -> Option<Duration> {
        self.has_sessions.then_some(IDLE)
    }

    async fn hold_state(&self) -> Option<String> {
        let held = self.world().hold("n1");
        (!self.is_outlet()).then(|| format!("{:?}, button locked: {}", held.restore, held.button_locked))
    }

    async fn identity(&self) -> Option<Identity> {
        let own = || match self.is_outlet() {
            true => Identity::default(),
            false => self.world().identity("n1").clone(),
        };
        Some(self.told.lock().another.clone().unwrap_or_else(own))
    }

    async fn lost_at(&self) -> Option<BootTime> {
        self.told.lock().lost_at
    }

    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Simulated {
    fn volume(&self, number: u32) -> VolumeAt {
        let letter = char::from_u32('b' as u32 + number % 25).unwrap_or('b');
        VolumeAt { id: format!("vol-{number}"), device: format!("/dev/vd{letter}{number}") }
    }

    /// How long all its volumes take to go, and how they misbehave.
    fn of_volumes(&self, takes: Duration, stuck: Option<Stuck>) {
        let made = self.told.lock().volumes;
        for number in 0..made {
            let (id, mut world) = (self.volume(number).id, self.world());
            let disk = world.disk(&id);
            (disk.takes, disk.stuck) = (takes, stuck);
        }
    }
}

#[async_trait]
impl Storage for Simulated {
    async fn attach(&self) -> VolumeAt {
        let number = {
            let mut told = self.told.lock();
            told.volumes += 1;
            told.volumes - 1
        };
        let at = self.volume(number);
        let disk = Disk { takes: Duration::ZERO, ..Disk::default() };
        self.world().add_volume("n1", &at.id, &at.device, disk);
        at
    }

    async fn shared(&self) -> Option<VolumeAt> {
        let at = self.attach().await;
        self.world().attach(self.clock.boot(), "n2", &at.id, &at.device);
        Some(at)
    }

    async fn hand_over(&self, volume: &VolumeAt) {
        let now = self.clock.boot();
        self.world().detach_by_hand(now, "n1", &volume.id).attach(now, "n2", &volume.id, &volume.device);
    }

    async fn hurt(&self, trouble: VolumeTrouble) -> bool {
        match trouble {
            // What it says of volumes is no text.
            VolumeTrouble::Garbled | VolumeTrouble::Cut => return false,
            VolumeTrouble::SlowDetach(time) => self.of_volumes(time, None),
            VolumeTrouble::DetachUnanswered => self.of_volumes(Duration::ZERO, Some(Stuck::Unanswered)),
        }
        true
    }

    async fn owners(&self, volume: &VolumeAt) -> Owners {
        let (mut world, now) = (self.world(), self.clock.boot());
        let ours = world.is_attached("n1", &volume.id, now);
        Owners { ours, others: usize::from(world.is_attached("n2", &volume.id, now)) }
    }

    async fn root(&self) -> String {
        ROOT.to_owned()
    }

    async fn detaches(&self, volume: &VolumeAt) -> Vec<Heard> {
        let mut world = self.world();
        let moves = world.volume_moves(self.clock.boot()).iter();
        let heard = moves.filter(|one| one.volume == volume.id).filter_map(|one| match one.what {
            // One for another place is as one of what is not there.
            Moved::Begun { .. } => Some(Heard { names_machine: one.machine == "n1", names_place: true }),
            _ => None,
        });
        heard.collect()
    }
}
