//! The conformance suite that every driver runs through: rules S1, S2, S6, S8, S9, S10, S11 and S18 as far as they can
//! be seen from outside, on a device whose truth the test knows.
//!
//! One line for a driver: `conformance::run(&subject).await`, with a [`Subject`] that makes drivers and hurts the
//! device. Only with the feature `conformance`, for tests: what it needs to make orders has no place in the gateway.

mod checks;
mod duties;
pub mod orders;
mod rig;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::time::Clock;

use crate::driver::PowerDriver;

/// What is done to the device, until it is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It answers nothing and does nothing.
    Silence,
    /// Once, at once: it restarts and has forgotten its sessions. What it controls stays as it is, and it goes on to
    /// say the truth.
    Restart,
    /// It does not like the credentials of drivers made from now on.
    WrongCredentials,
    /// It answers, but neither On nor Off.
    Nonsense,
    /// It takes an off at once; the fall comes so much later.
    SlowFall(Duration),
    /// An off while it is off is refused with an error, not said with a flag.
    AlreadyIsError,
    /// Every packet, in both directions, arrives twice.
    Doubled,
}

/// A device under test, and the ways to look at and hurt it that do not go through the driver.
#[async_trait]
pub trait Subject: Send + Sync {
    /// A driver for the device that was never used. Several may live at once.
    fn driver(&self) -> Arc<dyn PowerDriver>;

    /// The clocks in which its readings are stamped.
    fn clock(&self) -> Arc<dyn Clock>;

    /// The truth: whether what it controls is on.
    async fn is_on(&self) -> bool;

    /// Somebody else's hand: switches it, at once and for certain.
    async fn set_power(&self, on: bool);

    /// How many commands that change something have reached the device; `None` if nobody can tell.
    async fn commands(&self) -> Option<u64>;

    /// Hurts the device. `false`: this subject cannot; what needs it is left out, and said.
    async fn hurt(&self, trouble: Trouble) -> bool;

    /// Ends all troubles.
    async fn mend(&self);

    /// How long a call may take that is not about time, where the driver's own is too short for a machine that is busy.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// What no debug print and no error may contain.
    fn secrets(&self) -> Vec<String>;
}

/// What the suite did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Checks that were passed.
    pub passed: Vec<&'static str>,
    /// Checks that this subject cannot show, as it cannot be hurt that way.
    pub left_out: Vec<&'static str>,
}

/// A driver that does not conform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The check.
    pub check: &'static str,
    /// What was seen, and what would be right.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.what)
    }
}

impl std::error::Error for Failure {}

/// Runs every check, each with a driver of its own on a device that is on and unhurt.
///
/// # Errors
/// The first check that fails.
pub async fn run(subject: &dyn Subject) -> Result<Report, Failure> {
    let mut report = Report::default();
    for (check, body) in checks::ALL {
        subject.mend().await;
        subject.set_power(true).await;
        let rig = rig::Rig::new(subject).await.map_err(|what| Failure { check, what })?;
        match body(&rig).await {
            Ok(rig::Shown::Yes) => report.passed.push(check),
            Ok(rig::Shown::NotHere) => report.left_out.push(check),
            Err(what) => return Err(Failure { check, what }),
        }
        // Sessions are few; the next check opens its own.
        let _ = rig.quiesce().await;
    }
    subject.mend().await;
    subject.set_power(true).await;
    Ok(report)
}
