//! The checks of S6: nothing that changes anything is sent without a permit, asked for just before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use picket_answers::device::{DriverError, Effect, ErrorKind, HoldReport};
use tokio::time::sleep;

use super::Trouble;
use super::checks::Checked;
use super::rig::{Rig, Shown, ensure};
use crate::call::{Call, Witness};

/// How long a call may take in whose middle its permit ends: time for a copy before and for some after.
const HALVED: Duration = Duration::from_secs(3);
/// When it ends.
const MIDDLE: Duration = Duration::from_millis(400);
/// By then what left just before is where it is lost.
const LOST: Duration = Duration::from_millis(200);
/// The same, where a program of somebody else's sends, which has to be stopped.
const HALVED_FAR: Duration = Duration::from_secs(10);
const MIDDLE_FAR: Duration = Duration::from_secs(3);
const STOPPED: Duration = Duration::from_secs(3);
/// By then what was still under way has arrived.
const ARRIVED: Duration = Duration::from_millis(500);

pub(super) async fn no_permit(rig: &Rig<'_>) -> Checked {
    let found = rig.driver.inspect_hold(&rig.reading_call()).await.unwrap_or_default();
    // First with a call that may only read, then with one of a leadership that has ended. Orders are made before it does.
    let mut orders = Vec::new();
    for _ in 0..2 {
        orders.push((
            rig.orders.off().await?,
            rig.orders.on().await?,
            rig.orders.hold(&found).await?,
            rig.orders.unhold(&found).await?,
        ));
    }
    let (before, held) = (rig.subject.commands().await, rig.subject.hold_state().await);
    for (ended, (off, on, hold, unhold)) in [false, true].into_iter().zip(orders) {
        if ended {
            rig.orders.permit().end();
        }
        let call = |rig: &Rig<'_>| if ended { rig.call() } else { rig.reading_call() };
        rig.subject.set_power(true).await;
        let results = [
            ("an off", rig.driver.power_off(&off, &call(rig)).await.map(|_| ())),
            ("a hold", nothing_held(rig.driver.engage_hold(&hold, &call(rig)).await)),
            ("a hold's undoing", nothing_held(rig.driver.disengage_hold(&unhold, &call(rig)).await)),
            ("an on", rig.driver.power_on(on, &call(rig)).await.map(|_| ())),
        ];
        for (what, result) in results {
            match result {
                Err(error) if error.kind == ErrorKind::NotLeader => {
                    ensure!(error.effect == Effect::DidNotHappen, "{what} without a permit: {error:?}");
                }
                // A device without holds has nothing to send.
                Ok(()) if what.contains("hold") && found.is_empty() => {}
                other => return Err(format!("{what} without a permit ended as {other:?}")),
            }
        }
        ensure!(rig.subject.is_on().await, "without a permit it was switched off");
    }
    let after = rig.subject.commands().await;
    ensure!(before == after, "without a permit the device heard commands: {before:?}, then {after:?}");
    ensure!(rig.subject.hold_state().await == held, "without a permit the device's hold was changed");
    Ok(Shown::Yes)
}

fn nothing_held(report: Result<HoldReport, DriverError>) -> Result<(), DriverError> {
    match report {
        Ok(report) if report.engaged.is_empty() => Ok(()),
        Ok(report) => Err(DriverError::new(ErrorKind::Refused, Effect::Unknown, format!("{report:?}"))),
        Err(error) => Err(error),
    }
}

/// The permit ends while the driver logs in, or waits for the answer to its first copy: what comes after that must not be sent.
pub(super) async fn under_way(rig: &Rig<'_>) -> Checked {
    for warm in [false, true] {
        rig.subject.mend().await;
        let rig = &Rig::new(rig.subject).await?;
        if warm {
            rig.must_read().await?;
        }
        if !rig.subject.hurt(Trouble::Silence).await {
            return Ok(Shown::NotHere);
        }
        let (order, before) = (rig.orders.off().await?, rig.subject.commands().await);
        let (life, middle, stopped) = match rig.subject.hears_the_driver() {
            true => (HALVED, MIDDLE, LOST),
            false => (HALVED_FAR, MIDDLE_FAR, STOPPED),
        };
        let call = rig.call_of(life);
        let end = async {
            sleep(middle).await;
            rig.orders.permit().end();
            sleep(stopped).await;
            rig.subject.mend().await;
        };
        let (off, ()) = tokio::join!(rig.driver.power_off(&order, &call), end);
        let error = match off {
            Ok(accepted) => return Err(format!("its permit had ended, and the driver says {accepted:?}")),
            Err(error) => error,
        };
        sleep(ARRIVED).await;
        let (after, is_on) = (rig.subject.commands().await, rig.subject.is_on().await);
        ensure!(is_on, "its permit had ended, and it was switched off; warm: {warm}, {error:?}");
        ensure!(
            before == after,
            "its permit had ended, and the device heard commands: {before:?}, {after:?}"
        );
        rig.leave().await;
    }
    Ok(Shown::Yes)
}

/// How often the permit was asked for, and held.
#[derive(Debug, Default)]
struct Asked(AtomicU64);

impl Witness for Asked {
    fn permitted(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(super) async fn each_copy(rig: &Rig<'_>) -> Checked {
    let Some(mut heard) = rig.subject.commands().await else { return Ok(Shown::NotHere) };
    let asked = Arc::new(Asked::default());
    let call = |rig: &Rig<'_>| -> Call { rig.call().before(asked.clone()) };
    let found = rig.inspect().await?;
    let (hold, unhold) = (rig.orders.hold(&found).await?, rig.orders.unhold(&found).await?);
    let off = rig.orders.off().await?;
    for what in ["a hold", "an off", "a hold's undoing"] {
        let before = asked.0.load(Ordering::SeqCst);
        let done = match what {
            "a hold" => rig.driver.engage_hold(&hold, &call(rig)).await.map(|_| ()),
            "an off" => rig.driver.power_off(&off, &call(rig)).await.map(|_| ()),
            _ => rig.driver.disengage_hold(&unhold, &call(rig)).await.map(|_| ()),
        };
        done.map_err(|error| format!("{what}: {error}"))?;
        told(rig, what, asked.0.load(Ordering::SeqCst) - before, &mut heard).await?;
    }
    rig.quiesce().await.map_err(|error| format!("the session was not ended: {error}"))?;
    rig.must_read().await?;
    let on = rig.orders.on_in(rig.driver.session()).await?;
    let before = asked.0.load(Ordering::SeqCst);
    rig.driver.power_on(on, &call(rig)).await.map_err(|error| format!("an on: {error}"))?;
    told(rig, "an on", asked.0.load(Ordering::SeqCst) - before, &mut heard).await?;
    Ok(Shown::Yes)
}

/// Whether the permit was asked for as often as the device heard something, at the least.
async fn told(rig: &Rig<'_>, what: &str, asked: u64, heard: &mut u64) -> Result<(), String> {
    let now = rig.subject.commands().await.unwrap_or_default();
    let new = now - std::mem::replace(heard, now);
    let least = if rig.subject.hears_the_driver() { new } else { new.min(1) };
    ensure!(
        asked >= least,
        "{what}: the device heard {new} commands, and the permit was asked {asked} times"
    );
    Ok(())
}

/// What may only read changes nothing, whether or not its caller may.
pub(super) async fn looking(rig: &Rig<'_>) -> Checked {
    for on in [true, false] {
        rig.subject.set_power(on).await;
        let (commands, hold) = (rig.subject.commands().await, rig.subject.hold_state().await);
        rig.must_read().await?;
        rig.driver.identify(&rig.call()).await.map_err(|error| format!("asked who it is: {error}"))?;
        let found = rig.driver.inspect_hold(&rig.call()).await;
        let found = found.map_err(|error| format!("the hold cannot be inspected: {error}"))?;
        let _ = rig.driver.engaged(&found);
        rig.driver.read_power(&rig.call()).await.map_err(|error| format!("no reading: {error}"))?;
        let now = rig.subject.commands().await;
        ensure!(rig.subject.is_on().await == on, "it was looked at, and its power changed");
        ensure!(now == commands, "it was looked at, and heard commands: {commands:?}, then {now:?}");
        let now = rig.subject.hold_state().await;
        ensure!(now == hold, "it was looked at, and its hold changed: {hold:?}, then {now:?}");
    }
    Ok(Shown::Yes)
}
