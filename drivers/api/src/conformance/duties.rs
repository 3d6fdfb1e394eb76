//! The checks of what a driver owes besides power: permits, callers who leave, holds, identity, secrets.

use std::time::Duration;

use picket_core::power::Power;
use tokio::time::timeout;

use super::Trouble;
use super::checks::{Checked, SETTLES, SHORT};
use super::rig::{Rig, Shown, ensure};
use crate::driver::{HoldFound, HoldReport};
use crate::error::{DriverError, Effect, ErrorKind};

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
    let before = rig.subject.commands().await;
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
    Ok(Shown::Yes)
}

fn nothing_held(report: Result<HoldReport, DriverError>) -> Result<(), DriverError> {
    match report {
        Ok(report) if report.engaged.is_empty() => Ok(()),
        Ok(report) => Err(DriverError::new(ErrorKind::Refused, Effect::Unknown, format!("{report:?}"))),
        Err(error) => Err(error),
    }
}

pub(super) async fn cancelled(rig: &Rig<'_>) -> Checked {
    let patience = [0, 1, 2, 3, 5, 8, 13, 21, 34, 55].map(Duration::from_millis);
    for wait in patience {
        let _ = timeout(wait, rig.read()).await;
        let _ = timeout(wait, rig.driver.inspect_hold(&rig.reading_call())).await;
    }
    ensure!(rig.must_read().await?.power == Power::On, "after calls that were left it is not read right");
    for wait in patience {
        let order = rig.orders.off().await?;
        let _ = timeout(wait, rig.driver.power_off(&order, &rig.call())).await;
        rig.subject.set_power(true).await;
        let off = rig.off().await?;
        let reading = rig.read_until(Power::Off, SETTLES).await?;
        ensure!(reading.asked_at >= off.answered_at, "an old answer was taken: {off:?}, {reading:?}");
        rig.subject.set_power(true).await;
        let reading = rig.must_read().await?;
        ensure!(reading.power == Power::On, "an old answer was taken: {reading:?}");
    }
    Ok(Shown::Yes)
}

pub(super) async fn doubled(rig: &Rig<'_>) -> Checked {
    if !rig.subject.hurt(Trouble::Doubled).await {
        return Ok(Shown::NotHere);
    }
    let before = rig.must_read().await?;
    rig.off().await?;
    let reading = rig.read_until(Power::Off, SETTLES).await?;
    ensure!(reading.epoch == before.epoch, "a new epoch without a loss: {before:?}, {reading:?}");
    rig.quiesce().await.map_err(|error| format!("the session was not ended: {error}"))?;
    rig.on().await?;
    rig.read_until(Power::On, SETTLES).await?;
    Ok(Shown::Yes)
}

pub(super) async fn hold(rig: &Rig<'_>) -> Checked {
    let inspect = async || {
        let found = rig.driver.inspect_hold(&rig.reading_call()).await;
        found.map_err(|error| format!("the hold cannot be inspected: {error}"))
    };
    let before: HoldFound = inspect().await?;
    let report = rig.engage(&before).await?;
    ensure!(
        !(report.engaged.is_empty() && report.detail.is_empty()),
        "nothing is held, and the driver does not say why"
    );
    let again = rig.engage(&before).await?;
    ensure!(again.engaged == report.engaged, "a second hold is another: {report:?}, {again:?}");
    rig.disengage(&before).await?;
    let after = inspect().await?;
    let differs = |key: &str| before.get(key) != after.get(key) && !key.ends_with("running");
    let changed: Vec<&String> = before.keys().chain(after.keys()).filter(|key| differs(key)).collect();
    ensure!(changed.is_empty(), "not put back: {changed:?} of {before:?}, now {after:?}");
    ensure!(rig.subject.is_on().await, "a hold and its undoing switched it off");
    Ok(Shown::Yes)
}

pub(super) async fn identity(rig: &Rig<'_>) -> Checked {
    let mut said = Vec::new();
    for _ in 0..2 {
        let identity = rig.driver.identify(&rig.reading_call()).await;
        said.push(identity.map_err(|error| format!("it does not say who it is: {error}"))?);
    }
    ensure!(said[0] == said[1], "it says two things of itself: {said:?}");
    Ok(Shown::Yes)
}

pub(super) async fn credentials(rig: &Rig<'_>) -> Checked {
    if !rig.subject.hurt(Trouble::WrongCredentials).await {
        return Ok(Shown::NotHere);
    }
    let rig = &Rig::new(rig.subject).await?;
    let order = rig.orders.off().await?;
    for _ in 0..3 {
        let error = match rig.driver.power_off(&order, &rig.call()).await {
            Ok(accepted) => return Err(format!("wrong credentials, and {accepted:?}")),
            Err(error) => error,
        };
        ensure!(error.kind == ErrorKind::Authentication, "wrong credentials are {error:?}");
        ensure!(error.effect == Effect::DidNotHappen, "wrong credentials, and yet {error:?}");
        silent_about(rig, &format!("{error:?} {error}"))?;
    }
    ensure!(rig.subject.is_on().await, "wrong credentials, and it was switched off");
    Ok(Shown::Yes)
}

fn silent_about(rig: &Rig<'_>, text: &str) -> Result<(), String> {
    for secret in rig.subject.secrets() {
        // The secret itself is not repeated here either.
        ensure!(!text.contains(&secret), "a secret of {} characters is in a print or error", secret.len());
    }
    Ok(())
}

pub(super) async fn secrets(rig: &Rig<'_>) -> Checked {
    rig.must_read().await?;
    silent_about(rig, &format!("{:?}", rig.driver))?;
    silent_about(rig, &format!("{:#?}", rig.driver.traits()))?;
    if rig.subject.hurt(Trouble::Silence).await
        && let Err(error) = rig.driver.read_power(&rig.call_of(SHORT)).await
    {
        silent_about(rig, &format!("{error:?} {error}"))?;
    }
    Ok(Shown::Yes)
}

/// S8: what is stored with a session goes in that one; whoever leads later ends it by its name.
pub(super) async fn named_sessions(rig: &Rig<'_>) -> Checked {
    if !rig.driver.names_sessions() {
        rig.must_read().await?;
        ensure!(
            rig.driver.session().is_none(),
            "no session has a name, and this is {:?}",
            rig.driver.session()
        );
        return Ok(Shown::Yes);
    }
    rig.must_read().await?;
    let Some(name) = rig.driver.session() else {
        return Err("power was read, and there is no session".to_owned());
    };
    let successor = rig.subject.driver();
    let ended = successor.end_session(&name, &rig.call()).await;
    ended.map_err(|error| format!("the session {name:?} was not ended by its name: {error}"))?;
    // The first one knows nothing of that; then it has another session.
    for known in [false, true] {
        if known {
            rig.must_read().await?;
        }
        let order = rig.orders.off_in(Some(name.clone())).await?;
        match rig.driver.power_off(&order, &rig.call()).await {
            Err(error) if error.effect == Effect::DidNotHappen => {}
            other => return Err(format!("an off of a session that was ended came to {other:?}")),
        }
        ensure!(rig.subject.is_on().await, "an off went in a session that is not stored with it");
    }
    let Some(anew) = rig.driver.session().filter(|anew| *anew != name) else {
        return Err(format!("power was read again, and its session is still {name:?}"));
    };
    let order = rig.orders.off_in(Some(anew)).await?;
    let accepted = rig.driver.power_off(&order, &rig.call()).await;
    accepted.map_err(|error| format!("an off in the session that is stored with it: {error}"))?;
    rig.read_until(Power::Off, SETTLES).await?;
    let _ = successor.quiesce(&rig.call()).await;
    Ok(Shown::Yes)
}
