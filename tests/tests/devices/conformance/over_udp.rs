//! A BMC or a PDU behind a network of datagrams, by the driver ipmi or by a fence agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Identity;
use picket_core::time::{BootTime, Clock};
use picket_driver::PowerDriver;
use picket_driver::conformance::{Subject, Trouble};
use picket_driver_agent::AgentKind;
use picket_driver_ipmi::IpmiKind;
use picket_tests::peers::{ADMIN, Faults, PASSWORD, Pdu, UdpFault};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::conformance::bmc::Peer;
use crate::conformance::pdu::OUTLET;
use crate::conformance::scene::{Passwords, Ticking, WRONG, driver, secret};

/// Who speaks to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Our own driver, with these cipher suites.
    Ipmi(&'static [u8]),
    /// Debian's agent, which runs ipmitool.
    FenceIpmilan,
    /// Debian's agent, which runs net-snmp's programs.
    FenceEatonSnmp,
}

impl By {
    /// Whether it is a program, which is started for each question.
    fn is_agent(self) -> bool {
        matches!(self, By::FenceIpmilan | By::FenceEatonSnmp)
    }
}

/// The scene.
pub struct OverUdp<P> {
    peer: P,
    network: UdpFault,
    by: By,
    clock: Arc<Ticking>,
    passwords: Passwords,
    /// Of a PDU's user.
    passphrases: [NamedTempFile; 2],
    wrong: AtomicBool,
}

impl<P: Peer> OverUdp<P> {
    pub async fn new(peer: P, by: By) -> Self {
        let network = UdpFault::start(peer.address(), 8).await.expect("a relay");
        let (clock, passwords) = (Ticking::new(), Passwords::new());
        let passphrases = Pdu::passphrases().map(secret);
        Self { peer, network, by, clock, passwords, passphrases, wrong: AtomicBool::new(false) }
    }
}

#[async_trait]
impl<P: Peer> Subject for OverUdp<P> {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let (address, password) =
            (self.network.address(), self.passwords.path(!self.wrong.load(Ordering::SeqCst)));
        let (host, port) = (address.ip().to_string(), address.port());
        match self.by {
            By::Ipmi(suites) => {
                let settings = json!({
                    "host": host, "port": port, "username": ADMIN, "password_file": password,
                    "cipher_suites": suites, "privilege": "administrator",
                });
                driver(&IpmiKind, &settings, &self.clock)
            }
            By::FenceIpmilan => {
                let settings = json!({
                    "agent": "fence_ipmilan", "password_file": password,
                    "parameters": {
                        "ip": host, "ipport": port, "username": ADMIN, "lanplus": true, "cipher": "3", "power_wait": 0,
                    },
                });
                driver(&AgentKind::default(), &settings, &self.clock)
            }
            By::FenceEatonSnmp => {
                let [authentic, private] = &self.passphrases;
                let settings = json!({
                    "agent": "fence_eaton_snmp", "password_file": authentic.path(), "snmp_priv_passwd_file": private.path(),
                    "parameters": {
                        "ip": host, "ipport": port, "plug": OUTLET, "snmp_version": "3", "username": "picket",
                        "snmp_auth_prot": "SHA", "snmp_priv_prot": "AES", "snmp_sec_level": "authPriv", "power_wait": 0,
                    },
                });
                driver(&AgentKind::default(), &settings, &self.clock)
            }
        }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    async fn is_on(&self) -> bool {
        self.peer.is_on()
    }

    async fn set_power(&self, on: bool) {
        self.peer.set_power(on);
    }

    async fn commands(&self) -> Option<u64> {
        Some(self.peer.commands())
    }

    async fn hurt(&self, trouble: Trouble) -> bool {
        if let Some(hurt) = self.peer.hurt(trouble).await {
            return hurt;
        }
        let cut = Faults { cut: true, ..Faults::default() };
        match trouble {
            Trouble::Silence => self.network.both(cut),
            Trouble::AnswersLost => self.network.answers(cut),
            // What one run of an agent asks, and when, is its own affair, as is what ipmitool makes of copies; and one word of it
            // stands for all that went wrong.
            _ if self.by.is_agent() => return false,
            Trouble::SlowAnswers(delay) => self.network.answers(Faults { delay, ..Faults::default() }),
            Trouble::Doubled => self.network.both(Faults { copies: 1, ..Faults::default() }),
            Trouble::WrongCredentials => self.wrong.store(true, Ordering::SeqCst),
            Trouble::FirstCopyLost => self.network.requests(Faults { lose_next: 1, ..Faults::default() }),
            Trouble::LateCopies(copy_delay) => {
                self.network.requests(Faults { copies: 1, copy_delay, ..Faults::default() });
            }
            _ => return false,
        }
        true
    }

    async fn mend(&self) {
        self.network.both(Faults::default());
        self.wrong.store(false, Ordering::SeqCst);
        self.peer.mend();
    }

    fn patience(&self) -> Option<Duration> {
        // No bound of an idle machine: what is slow here is the machine, and an agent is a program that is started for each question.
        Some(Duration::from_secs(if self.by.is_agent() { 60 } else { 15 }))
    }

    fn hears_the_driver(&self) -> bool {
        !self.by.is_agent()
    }

    async fn sessions(&self) -> Option<u64> {
        // An agent's are its own, and over with its run.
        if self.hears_the_driver() { self.peer.sessions() } else { None }
    }

    fn half_logins_last(&self) -> Option<Duration> {
        // From Open Session on.
        self.hears_the_driver().then(|| self.peer.idle_limit())
    }

    fn idle_limit(&self) -> Option<Duration> {
        self.hears_the_driver().then(|| self.peer.idle_limit())
    }

    async fn hold_state(&self) -> Option<String> {
        self.peer.hold_state()
    }

    async fn identity(&self) -> Option<Identity> {
        // Agents have no word for it.
        if self.hears_the_driver() { self.peer.identity() } else { Some(Identity::default()) }
    }

    async fn lost_at(&self) -> Option<BootTime> {
        self.network.lost_request_at().map(|moment| self.clock.of(moment))
    }

    fn secrets(&self) -> Vec<String> {
        [PASSWORD, WRONG].into_iter().chain(Pdu::passphrases()).map(str::to_owned).collect()
    }
}
