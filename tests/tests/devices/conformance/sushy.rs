//! A Redfish service that others wrote: sushy-emulator, untouched.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::time::Clock;
use picket_driver::PowerDriver;
use picket_driver::conformance::{Subject, Trouble};
use picket_driver_agent::AgentKind;
use picket_driver_redfish::RedfishKind;
use picket_engine::clock::SystemClock;
use picket_tests::Result;
use picket_tests::peers::{ADMIN, PASSWORD, SYSTEMS, Sushy};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::conformance::scene::{Ticking, driver, secret};

const WRONG: &str = "wrong-hunter3";

/// Who speaks to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Our own driver.
    Redfish,
    /// Debian's agent.
    FenceRedfish,
}

/// One system of it.
pub struct SushySubject {
    by: By,
    sushy: Mutex<Sushy>,
    wrong: AtomicBool,
    /// Its power is in transition, whatever is done.
    odd: AtomicBool,
    right: NamedTempFile,
    other: NamedTempFile,
}

impl SushySubject {
    fn sushy<T>(&self, ask: impl FnOnce(&mut Sushy) -> Result<T>) -> T {
        ask(&mut self.sushy.lock()).expect("sushy-emulator")
    }
}

#[async_trait]
impl Subject for SushySubject {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let (address, ca) = self.sushy(|sushy| Ok((sushy.address(), sushy.ca_file())));
        let password = if self.wrong.load(Ordering::SeqCst) { &self.other } else { &self.right };
        if self.by == By::FenceRedfish {
            // It cannot be told of a CA.
            let settings = json!({
                "agent": "fence_redfish", "password_file": password.path(),
                "parameters": {
                    "ip": address.ip().to_string(), "ipport": address.port(), "username": ADMIN, "ssl_insecure": true,
                    "systems_uri": format!("/redfish/v1/Systems/{}", SYSTEMS[0]),
                },
            });
            return driver(&AgentKind::default(), &settings, &Ticking::new());
        }
        let settings = json!({
            "host": address.ip().to_string(), "port": address.port(), "system": SYSTEMS[0], "username": ADMIN,
            "password_file": password.path(), "authentication": "basic", "ca_file": ca,
        });
        let settings = settings.as_object().expect("a table");
        Arc::new(RedfishKind::default().device(settings).expect("right settings"))
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    async fn is_on(&self) -> bool {
        self.sushy(|sushy| sushy.is_on(SYSTEMS[0]))
    }

    async fn set_power(&self, on: bool) {
        let word = match (self.odd.load(Ordering::SeqCst), on) {
            (true, true) => "PoweringOn",
            (true, false) => "PoweringOff",
            (false, true) => "On",
            (false, false) => "Off",
        };
        self.sushy(|sushy| sushy.switch(SYSTEMS[0], word));
    }

    async fn commands(&self) -> Option<u64> {
        self.sushy(|sushy| Ok(u64::try_from(sushy.resets()).ok()))
    }

    async fn hurt(&self, trouble: Trouble) -> bool {
        match trouble {
            Trouble::Silence => self.sushy(|sushy| {
                sushy.process().freeze();
                Ok(())
            }),
            // One word of the agent stands for all that went wrong, and all that is not Off is on to it.
            Trouble::WrongCredentials | Trouble::Transition if self.by == By::FenceRedfish => return false,
            Trouble::WrongCredentials => self.wrong.store(true, Ordering::SeqCst),
            Trouble::Transition => {
                let on = self.is_on().await;
                self.odd.store(true, Ordering::SeqCst);
                self.set_power(on).await;
            }
            // Each of its falls takes 1 to 11 s; it has no sessions; TCP delivers once; an off of what is off it takes; and what goes
            // wrong in other ways it does not do.
            _ => return false,
        }
        true
    }

    async fn mend(&self) {
        self.wrong.store(false, Ordering::SeqCst);
        self.odd.store(false, Ordering::SeqCst);
        self.sushy(|sushy| {
            sushy.process().thaw();
            sushy.switch(SYSTEMS[0], "On")
        });
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.to_owned(), WRONG.to_owned()]
    }
}

impl SushySubject {
    /// One that runs, with a system that is on.
    pub async fn start(by: By) -> Result<Self> {
        let (wrong, odd) = (AtomicBool::new(false), AtomicBool::new(false));
        let (right, other) = (secret(PASSWORD), secret(WRONG));
        let sushy = Sushy::start().await?;
        // Its state is there once it was asked.
        assert!(sushy.truth(SYSTEMS[0])());
        Ok(Self { by, sushy: Mutex::new(sushy), wrong, odd, right, other })
    }
}
