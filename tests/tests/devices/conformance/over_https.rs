//! A BMC behind a connection, by the driver redfish.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Identity;
use picket_core::time::{BootTime, Clock};
use picket_driver::PowerDriver;
use picket_driver::conformance::{Subject, Trouble};
use picket_driver_redfish::RedfishKind;
use picket_driver_sim::{Fault, Login};
use picket_tests::peers::{ADMIN, PASSWORD, TcpFault};
use serde_json::{Value, json};

use crate::conformance::bmc::Peer;
use crate::conformance::scene::{Passwords, Simulated, Ticking, WRONG, driver};

/// The scene.
pub struct OverHttps {
    peer: Simulated,
    network: TcpFault,
    clock: Arc<Ticking>,
    passwords: Passwords,
    wrong: AtomicBool,
    more: Value,
}

impl OverHttps {
    /// With these settings over the usual ones.
    pub async fn new(peer: Simulated, more: Value) -> Self {
        let server = peer.bmc.redfish_address().expect("it speaks Redfish");
        // Its certificate names its address.
        let network = TcpFault::on(server.ip(), server).await.expect("a relay");
        let (clock, passwords) = (Ticking::new(), Passwords::new());
        Self { peer, network, clock, passwords, wrong: AtomicBool::new(false), more }
    }

    fn has_sessions(&self) -> bool {
        self.more["authentication"] != "basic"
    }
}

#[async_trait]
impl Subject for OverHttps {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let (address, wrong) = (self.network.address(), self.wrong.load(Ordering::SeqCst));
        let mut settings = json!({
            "host": address.ip().to_string(), "port": address.port(), "username": ADMIN,
            "password_file": self.passwords.path(!wrong), "ca_file": self.peer.ca_file(),
        });
        for (key, value) in self.more.as_object().expect("a table") {
            settings[key] = value.clone();
        }
        driver(&RedfishKind::default(), &settings, &self.clock)
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
        match trouble {
            Trouble::Silence => self.peer.bmc.fault(Fault::Silent),
            Trouble::CutAnswers => self.peer.bmc.fault(Fault::CutsAnswers),
            Trouble::Redirects => self.peer.bmc.fault(Fault::Redirects),
            Trouble::UselessLogins => self.peer.bmc.fault(Fault::LoginSays(Login::Place)),
            Trouble::AnswersLost => self.network.cut_after_the_request(),
            Trouble::FirstCopyLost => self.network.lose_the_next_request(),
            Trouble::WrongCredentials => self.wrong.store(true, Ordering::SeqCst),
            // TCP delivers once, and in the life of its connection.
            _ => return false,
        }
        true
    }

    async fn mend(&self) {
        self.network.heal();
        self.wrong.store(false, Ordering::SeqCst);
        Peer::mend(&self.peer);
    }

    fn patience(&self) -> Option<Duration> {
        // On a busy machine one handshake after another takes longer than a BMC's call.
        Some(Duration::from_secs(60))
    }

    async fn sessions(&self) -> Option<u64> {
        if self.has_sessions() { Peer::sessions(&self.peer) } else { None }
    }

    fn idle_limit(&self) -> Option<Duration> {
        self.has_sessions().then(|| Peer::idle_limit(&self.peer))
    }

    async fn hold_state(&self) -> Option<String> {
        Peer::hold_state(&self.peer)
    }

    async fn identity(&self) -> Option<Identity> {
        Peer::identity(&self.peer)
    }

    async fn lost_at(&self) -> Option<BootTime> {
        self.network.lost_at().map(|moment| self.clock.of(moment))
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.to_owned(), WRONG.to_owned()]
    }
}
