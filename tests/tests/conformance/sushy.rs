//! A Redfish service that others wrote: sushy-emulator, untouched.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::time::Clock;
use picket_driver::PowerDriver;
use picket_driver::conformance::{Subject, Trouble};
use picket_driver_redfish::RedfishKind;
use picket_engine::clock::SystemClock;
use picket_tests::Result;
use picket_tests::peers::{ADMIN, PASSWORD, SYSTEMS, Sushy};
use serde_json::json;
use tempfile::NamedTempFile;

const WRONG: &str = "wrong-hunter3";

/// One system of it.
pub struct SushySubject {
    sushy: Mutex<Sushy>,
    wrong: AtomicBool,
    /// Its power is in transition, whatever is done.
    odd: AtomicBool,
    right: NamedTempFile,
    other: NamedTempFile,
}

fn secret(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file
}

impl SushySubject {
    fn sushy<T>(&self, ask: impl FnOnce(&mut Sushy) -> Result<T>) -> T {
        ask(&mut self.sushy.lock().expect("whole")).expect("sushy-emulator")
    }
}

#[async_trait]
impl Subject for SushySubject {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let (address, ca) = self.sushy(|sushy| Ok((sushy.address(), sushy.ca_file())));
        let password = if self.wrong.load(Ordering::SeqCst) { &self.other } else { &self.right };
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
    pub async fn start() -> Result<Self> {
        let (wrong, odd) = (AtomicBool::new(false), AtomicBool::new(false));
        let (right, other) = (secret(PASSWORD), secret(WRONG));
        let sushy = Sushy::start().await?;
        // Its state is there once it was asked.
        assert!(sushy.truth(SYSTEMS[0])());
        Ok(Self { sushy: Mutex::new(sushy), wrong, odd, right, other })
    }
}
