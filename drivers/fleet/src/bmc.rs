//! One machine with its BMC, on a socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use picket_core::time::{BootTime, Clock, WallTime};
use picket_driver_ipmi::crypto::Suite;
use picket_driver_sim::{Act, Fault, Way, World};
use tokio::net::UdpSocket;

use crate::account::Account;
use crate::ipmi::{IpmiBmc, IpmiOptions};
use crate::pki::{Authority, Certificate, IssuerKind, PkiError, ShownCertificate};
use crate::redfish::{RedfishBmc, RedfishOptions};

/// The largest datagram that is read; what is longer is cut, and then nothing.
const LARGEST: usize = 1024;
/// How many packets of one BMC may be under way at once; further ones are lost.
const UNDER_WAY: usize = 64;
/// How much of each machine's history is kept.
const HISTORY: usize = 256;

/// What a simulated machine and its BMC are like.
#[derive(Clone, Debug)]
pub struct BmcOptions {
    /// The machine's name, and that of its BMC's device in the world.
    pub name: String,
    /// Where its BMC speaks IPMI: an address of 127.0.0.0/8.
    pub ipmi: SocketAddr,
    /// Who may log in.
    pub accounts: Arc<[Account]>,
    /// The cipher suites that it speaks.
    pub suites: Vec<Suite>,
    /// How many sessions it has at once.
    pub sessions: usize,
    /// After how long an idle one ends (60 s ± 3 s with real BMCs, IPMI 2.0 §6.12.15).
    pub idle: Duration,
    /// Where it speaks Redfish as well, if it does.
    pub redfish: Option<RedfishPlace>,
    /// Decides all that is left to chance.
    pub seed: u64,
}

/// Where and how a BMC speaks Redfish.
#[derive(Clone, Debug)]
pub struct RedfishPlace {
    /// An address of 127.0.0.0/8.
    pub address: SocketAddr,
    /// How many sessions it has at once, beside those of IPMI.
    pub sessions: usize,
    /// After how long an idle one ends.
    pub idle: Duration,
    /// A reset answers 202 and a task, and not 204.
    pub tasks: bool,
}

/// A BMC's Redfish.
#[derive(Debug)]
pub(crate) struct Redfish {
    pub(crate) address: SocketAddr,
    /// Its device in the world: sessions, and faults, of its own.
    pub(crate) device: String,
    pub(crate) pki: Certificate,
    pub(crate) bmc: Mutex<RedfishBmc>,
}

/// A machine with its BMC, which answers as long as its [`Fleet`](crate::Fleet) is there.
#[derive(Debug)]
pub struct Bmc {
    name: String,
    address: SocketAddr,
    clock: Arc<dyn Clock>,
    world: Mutex<World>,
    ipmi: Mutex<IpmiBmc>,
    redfish: Option<Redfish>,
    socket: UdpSocket,
    under_way: AtomicUsize,
    came: AtomicUsize,
}

impl Bmc {
    pub(crate) fn new(
        options: &BmcOptions,
        clock: Arc<dyn Clock>,
        authority: &Arc<Authority>,
        socket: UdpSocket,
    ) -> Self {
        let name = options.name.clone();
        let mut world = World::new(options.seed);
        world.set_history(HISTORY).add_machine(&name).add_host(&name, &name);
        world.set_sessions(&name, options.sessions, options.idle);
        let ipmi = IpmiOptions {
            machine: name.clone(),
            device: name.clone(),
            accounts: options.accounts.clone(),
            suites: options.suites.clone(),
        };
        let ipmi = IpmiBmc::new(ipmi, &world, options.seed);
        let redfish = options.redfish.as_ref().map(|place| {
            let device = format!("{name}-redfish");
            world.add_host(&name, &device).set_sessions(&device, place.sessions, place.idle);
            let elapsed = u64::try_from(clock.boot().since_boot().as_millis()).unwrap_or(u64::MAX);
            let redfish = RedfishOptions {
                machine: name.clone(),
                device: device.clone(),
                accounts: options.accounts.clone(),
                tasks: place.tasks,
                began: WallTime::from_millis(clock.wall().millis().saturating_sub(elapsed)),
            };
            let bmc = Mutex::new(RedfishBmc::new(redfish, options.seed));
            Redfish { address: place.address, device, pki: Certificate::of(authority), bmc }
        });
        Self {
            address: options.ipmi,
            redfish,
            clock,
            world: Mutex::new(world),
            ipmi: Mutex::new(ipmi),
            socket,
            under_way: AtomicUsize::new(0),
            came: AtomicUsize::new(0),
            name,
        }
    }

    /// The machine's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it speaks IPMI.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What time it is in its world.
    pub fn now(&self) -> BootTime {
        self.clock.boot()
    }

    /// How many datagrams came to its IPMI, whatever became of them.
    pub fn datagrams(&self) -> usize {
        self.came.load(Ordering::Relaxed)
    }

    /// How many requests its Redfish turned away, as they came by tokens that it does not know (any more).
    pub fn turned_away(&self) -> u64 {
        let bmc = |redfish: &Redfish| redfish.bmc.lock().turned_away;
        self.redfish.as_ref().map_or(0, bmc)
    }

    /// Its world: one machine and the device of its IPMI, both by [`Bmc::name`], and `<name>-redfish`. No packet is answered while it is held.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }

    /// Whether the machine is truly on.
    pub fn is_on(&self) -> bool {
        let now = self.now();
        self.world().truth(&self.name, now)
    }

    /// From now on it misbehaves so, too, whichever protocol it is asked in.
    pub fn fault(&self, fault: Fault) {
        let mut world = self.world();
        for device in self.devices() {
            world.fault(device, fault.clone());
        }
    }

    /// It works as it should again.
    pub fn mend(&self) {
        let mut world = self.world();
        for device in self.devices() {
            world.mend(device);
        }
    }

    /// It restarts: silent for `down`, all sessions lost. The machine goes on. `estranged`: afterwards it believes that its
    /// machine is off, and does nothing for an off, until it switches on.
    pub fn restart(&self, down: Duration, estranged: bool) {
        for device in self.devices() {
            self.happen(Act::RestartBmc { device: device.to_owned(), down, estranged });
        }
    }

    /// It forgets its sessions.
    pub fn lose_sessions(&self) {
        for device in self.devices() {
            self.happen(Act::LoseSessions { device: device.to_owned() });
        }
    }

    /// It has another certificate, by the same authority; its connections end, as where the server of its pages starts again.
    pub fn change_certificate(&self) {
        if let Some(redfish) = &self.redfish {
            redfish.pki.renew();
        }
    }

    /// Somebody else answers in its Redfish's place from the next connection on: by a certificate of an authority that nobody knows.
    ///
    /// # Errors
    /// None can be made.
    pub fn forge_certificate(&self) -> Result<(), PkiError> {
        self.redfish.as_ref().map_or(Ok(()), |redfish| redfish.pki.forge())
    }

    /// The certificate that its Redfish shows to whoever comes now, as DER; `None`: it speaks none, or no certificate can be made.
    pub fn certificate(&self) -> Option<Vec<u8>> {
        Some(self.certificate_shown()?.der.to_vec())
    }

    pub(crate) fn certificate_shown(&self) -> Option<ShownCertificate> {
        let redfish = self.redfish.as_ref()?;
        let suffers = |fault| self.world().suffers(&redfish.device, &fault);
        let maker = if suffers(Fault::OwnCertificateV1) {
            IssuerKind::ItselfV1
        } else if suffers(Fault::OwnCertificate) {
            IssuerKind::Itself
        } else {
            IssuerKind::Authority
        };
        redfish.pki.shown_at(redfish.address.ip(), maker).ok()
    }

    /// Its Redfish does not offer that value of `ResetType` any more.
    pub fn withdraw(&self, reset_type: &str) {
        if let Some(redfish) = &self.redfish {
            let mut bmc = redfish.bmc.lock();
            bmc.offered.retain(|offered| *offered != reset_type);
        }
    }

    /// How many clients took the certificate that it has now.
    pub fn handshakes(&self) -> u64 {
        self.redfish.as_ref().map_or(0, |redfish| redfish.pki.handshakes())
    }

    fn devices(&self) -> impl Iterator<Item = &str> {
        let redfish = self.redfish.as_ref().map(|redfish| redfish.device.as_str());
        [self.name.as_str()].into_iter().chain(redfish)
    }

    pub(crate) fn redfish(&self) -> Option<&Redfish> {
        self.redfish.as_ref()
    }

    pub(crate) fn is_silent(&self, device: &str) -> bool {
        let now = self.now();
        self.world().is_silent(device, now)
    }

    /// Where it speaks Redfish.
    pub fn redfish_address(&self) -> Option<SocketAddr> {
        self.redfish.as_ref().map(|redfish| redfish.address)
    }

    /// Something happens to it now.
    pub fn happen(&self, act: Act) {
        let now = self.now();
        self.world().happen(now, act);
    }

    /// Answers until the runtime ends.
    pub(crate) async fn serve(self: Arc<Self>) {
        loop {
            if self.socket.readable().await.is_err() {
                // The runtime ends.
                return;
            }
            // The buffer lives on the stack, and not in each of ten thousand waiting tasks.
            while self.receive() {}
        }
    }

    /// Takes in one datagram; whether there was one.
    fn receive(self: &Arc<Self>) -> bool {
        let mut buffer = [0; LARGEST];
        match self.socket.try_recv_from(&mut buffer) {
            Ok((len, from)) => {
                self.came.fetch_add(1, Ordering::Relaxed);
                self.arrive(from, &buffer[..len]);
                true
            }
            Err(_) => false,
        }
    }

    fn arrive(self: &Arc<Self>, from: SocketAddr, datagram: &[u8]) {
        let passage = self.world().passage(self.now(), &self.name, Way::There);
        for delay in passage.copies() {
            let mut copy = datagram.to_vec();
            self.later(delay, move |bmc| bmc.answer(from, &mut copy));
        }
    }

    fn answer(self: &Arc<Self>, from: SocketAddr, datagram: &mut [u8]) {
        let (answer, late, passage) = {
            let (mut world, now) = (self.world(), self.now());
            let mut ipmi = self.ipmi.lock();
            let Some(answer) = ipmi.handle(now, &mut world, datagram) else { return };
            (answer, ipmi.late, world.passage(now, &self.name, Way::Back))
        };
        for delay in passage.copies() {
            let copy = answer.clone();
            self.later(late + delay, move |bmc| {
                // What the kernel has no room for is lost, as on any network.
                let _ = bmc.socket.try_send_to(&copy, from);
            });
        }
    }

    /// Does something now, or after `delay` if the BMC is still there then.
    fn later(self: &Arc<Self>, delay: Duration, what: impl FnOnce(&Arc<Self>) + Send + 'static) {
        if delay.is_zero() {
            return what(self);
        }
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= UNDER_WAY {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let bmc = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            if let Some(bmc) = bmc.upgrade() {
                bmc.under_way.fetch_sub(1, Ordering::Relaxed);
                what(&bmc);
            }
        });
    }
}
