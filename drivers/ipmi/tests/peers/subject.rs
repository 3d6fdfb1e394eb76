//! A BMC behind a network, as the conformance suite wants it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use picket_core::time::Clock;
use picket_driver::PowerDriver;
use picket_driver::conformance::{Subject, Trouble};
use picket_driver_ipmi::IpmiKind;
use serde_json::{Value, json};

use crate::bench::{RealClock, context, password, settings};
use crate::bmc::{Bmc, PASSWORD};
use crate::network::{Fate, Network};
use crate::pyghmi::Pyghmi;

/// What the suite needs of a BMC.
pub trait Peer: Send {
    fn address(&self) -> SocketAddr;
    fn settings(&self) -> Value;
    fn is_on(&self) -> bool;
    fn set_power(&self, on: bool);
    fn commands(&self) -> u64;
    /// `None` where the network does it.
    fn hurt(&mut self, trouble: Trouble) -> Option<bool>;
    fn mend(&self);
}

impl Peer for Bmc {
    fn address(&self) -> SocketAddr {
        Bmc::address(self)
    }

    fn settings(&self) -> Value {
        json!({ "privilege": "administrator" })
    }

    fn is_on(&self) -> bool {
        Bmc::is_on(self)
    }

    fn set_power(&self, on: bool) {
        Bmc::set_power(self, on);
    }

    fn commands(&self) -> u64 {
        let holds = std::fs::read_to_string(self.file("hold.log")).unwrap_or_default().lines().count();
        (Bmc::commands(self).len() + holds) as u64
    }

    fn hurt(&mut self, trouble: Trouble) -> Option<bool> {
        match trouble {
            Trouble::Restart => self.restart(),
            Trouble::Nonsense => std::fs::write(self.file("mute"), "").expect("a knob"),
            Trouble::SlowFall(after) => {
                std::fs::write(self.file("fall"), after.as_secs_f64().to_string()).expect("a knob");
            }
            Trouble::AlreadyIsError => return Some(false),
            _ => return None,
        }
        Some(true)
    }

    fn mend(&self) {
        let _ = std::fs::remove_file(self.file("mute"));
        let _ = std::fs::remove_file(self.file("fall"));
    }
}

impl Peer for Pyghmi {
    fn address(&self) -> SocketAddr {
        Pyghmi::address(self)
    }

    fn settings(&self) -> Value {
        json!({ "cipher_suites": [17] })
    }

    fn is_on(&self) -> bool {
        Pyghmi::is_on(self)
    }

    fn set_power(&self, on: bool) {
        self.set("power", if on { "1" } else { "0" });
    }

    fn commands(&self) -> u64 {
        let power = |what: &String| what.starts_with("on") || what.starts_with("off");
        Pyghmi::commands(self).into_iter().filter(power).count() as u64
    }

    fn hurt(&mut self, trouble: Trouble) -> Option<bool> {
        match trouble {
            Trouble::Restart => self.restart(),
            Trouble::Nonsense => return Some(false),
            Trouble::SlowFall(after) => self.set("off_delay", &after.as_secs_f64().to_string()),
            Trouble::AlreadyIsError => self.set("refuse_again", ""),
            _ => return None,
        }
        Some(true)
    }

    fn mend(&self) {
        self.clear("off_delay");
        self.clear("refuse_again");
    }
}

pub struct PeerSubject<P> {
    peer: Mutex<P>,
    network: Network,
    clock: Arc<dyn Clock>,
    password: Mutex<&'static str>,
}

impl<P: Peer> PeerSubject<P> {
    pub async fn new(peer: P) -> Self {
        let network = Network::before(peer.address()).await;
        Self { peer: Mutex::new(peer), network, clock: RealClock::shared(), password: Mutex::new(PASSWORD) }
    }

    fn peer<T>(&self, look: impl FnOnce(&mut P) -> T) -> T {
        look(&mut self.peer.lock().expect("not poisoned"))
    }
}

#[async_trait]
impl<P: Peer> Subject for PeerSubject<P> {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let password = password(*self.password.lock().expect("not poisoned"));
        let table = settings(self.network.address(), &password, self.peer(|peer| peer.settings()));
        let driver = IpmiKind.device(&table, &context(&self.clock)).expect("the settings are right");
        Arc::new(driver)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    async fn is_on(&self) -> bool {
        self.peer(|peer| peer.is_on())
    }

    async fn set_power(&self, on: bool) {
        self.peer(|peer| peer.set_power(on));
    }

    async fn commands(&self) -> Option<u64> {
        Some(self.peer(|peer| peer.commands()))
    }

    async fn hurt(&self, trouble: Trouble) -> bool {
        if let Some(hurt) = self.peer(|peer| peer.hurt(trouble)) {
            return hurt;
        }
        match trouble {
            Trouble::Silence => self.network.cut(),
            Trouble::WrongCredentials => *self.password.lock().expect("not poisoned") = "wrong-hunter2",
            Trouble::Doubled => self.network.rule(|_, _| Fate::Twice),
            _ => return false,
        }
        true
    }

    async fn mend(&self) {
        self.network.heal();
        *self.password.lock().expect("not poisoned") = PASSWORD;
        self.peer(|peer| peer.mend());
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.to_owned(), "wrong-hunter2".to_owned()]
    }
}
