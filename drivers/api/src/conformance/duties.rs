//! The checks of what a driver owes besides power: callers who leave or come together, holds, identity, secrets.

use std::time::Duration;

use picket_answers::device::{DriverError, Effect, ErrorKind, HoldFound};
use picket_core::device::Identity;
use picket_core::power::{Power, Reading};
use tokio::time::{Instant, sleep, timeout};

use super::Trouble;
use super::checks::{Checked, SETTLES, SHORT};
use super::rig::{Rig, Shown, ensure};

/// A session that is not used ends by itself after 60 s (IPMI 2.0, 6.12.15); a login that was not finished too.
const IDLES_OUT: Duration = Duration::from_secs(120);

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

/// A board may lose its way in a login that came twice, and each copy of it takes a slot, which is free again once it has idled out, a minute later.
/// Whoever asks it once more, and again while it has no slot, is answered.
async fn read_in_the_end(rig: &Rig<'_>) -> Result<Reading, String> {
    let (ends, mut is_lost) = (Instant::now() + IDLES_OUT, false);
    loop {
        match rig.read().await {
            Err(full) if full.kind == ErrorKind::Throttled && Instant::now() < ends => sleep(SHORT).await,
            Err(_) if !is_lost => is_lost = true,
            _ => return rig.must_read().await,
        }
    }
}

pub(super) async fn doubled(rig: &Rig<'_>) -> Checked {
    if !rig.subject.hurt(Trouble::Doubled).await {
        return Ok(Shown::NotHere);
    }
    let before = read_in_the_end(rig).await?;
    rig.off().await?;
    let reading = rig.read_until(Power::Off, SETTLES).await?;
    ensure!(reading.epoch == before.epoch, "a new epoch without a loss: {before:?}, {reading:?}");
    rig.quiesce().await.map_err(|error| format!("the session was not ended: {error}"))?;
    read_in_the_end(rig).await?;
    rig.on().await?;
    rig.read_until(Power::On, SETTLES).await?;
    Ok(Shown::Yes)
}

pub(super) async fn together(rig: &Rig<'_>) -> Checked {
    rig.must_read().await?;
    let order = rig.orders.off().await?;
    let (off, first, second, identity) = tokio::join!(
        async { rig.driver.power_off(&order, &rig.call()).await },
        rig.must_read(),
        rig.must_read(),
        async { rig.driver.identify(&rig.reading_call()).await },
    );
    let off = off.map_err(|error| format!("an off beside other calls: {error}"))?;
    identity.map_err(|error| format!("asked who it is beside other calls: {error}"))?;
    for reading in [first?, second?] {
        let before = reading.power == Power::Off && reading.answered_at < off.asked_at;
        ensure!(!before, "it was read off before it was told to be: {reading:?}, {off:?}");
    }
    rig.read_until(Power::Off, SETTLES).await?;
    Ok(Shown::Yes)
}

pub(super) async fn hold(rig: &Rig<'_>) -> Checked {
    let free = rig.subject.hold_state().await;
    let before: HoldFound = rig.inspect().await?;
    let report = rig.engage(&before).await?;
    ensure!(
        !(report.engaged.is_empty() && report.detail.is_empty()),
        "nothing is held, and the driver does not say why"
    );
    let held = rig.subject.hold_state().await;
    ensure!(
        free.is_none() || (held == free) == report.engaged.is_empty(),
        "it says that {:?} is engaged; the device had {free:?} and has {held:?}",
        report.engaged
    );
    // What a later look finds is what stands: another gateway's, or after the device forgot.
    let stands = rig.driver.engaged(&rig.inspect().await?);
    let missing: Vec<&String> = report.engaged.iter().filter(|what| !stands.contains(what)).collect();
    ensure!(missing.is_empty(), "engaged, and not found by a look: {missing:?}, which finds {stands:?}");
    let again = rig.engage(&before).await?;
    ensure!(again.engaged == report.engaged, "a second hold is another: {report:?}, {again:?}");
    rig.disengage(&before).await?;
    let after = rig.inspect().await?;
    let differs = |key: &str| before.get(key) != after.get(key) && !key.ends_with("running");
    let changed: Vec<&String> = before.keys().chain(after.keys()).filter(|key| differs(key)).collect();
    ensure!(changed.is_empty(), "not put back: {changed:?} of {before:?}, now {after:?}");
    let after = rig.subject.hold_state().await;
    ensure!(after == free, "not put back: the device had {free:?} and has {after:?}");
    ensure!(rig.subject.is_on().await, "a hold and its undoing switched it off");
    Ok(Shown::Yes)
}

/// Whether what a driver says of a machine is nothing that the machine does not say.
fn is_of(said: &Identity, is: &Identity) -> bool {
    let digits = |text: &str| text.to_ascii_lowercase().replace('-', "");
    let same = |said: &Option<String>, is: &Option<String>| match (said, is) {
        (Some(said), Some(is)) => digits(said) == digits(is),
        (None, _) => true,
        (Some(_), None) => false,
    };
    same(&said.uuid, &is.uuid) && same(&said.serial, &is.serial)
}

pub(super) async fn identity(rig: &Rig<'_>) -> Checked {
    let ask = async || {
        let said = rig.driver.identify(&rig.reading_call()).await;
        said.map(|said| said.identity).map_err(|error| format!("it does not say who it is: {error}"))
    };
    let (first, second) = (ask().await?, ask().await?);
    ensure!(first == second, "it says two things of itself: {first:?}, {second:?}");
    for other in [false, true] {
        if other && !rig.subject.hurt(Trouble::OtherMachine).await {
            break;
        }
        let Some(is) = rig.subject.identity().await else { break };
        let said = ask().await?;
        ensure!(is.is_empty() == said.is_empty(), "it says {is:?}, and the driver {said:?}");
        ensure!(is_of(&said, &is), "it says {is:?}, and the driver {said:?}");
        ensure!(!other || said != first, "it is another machine, and the driver says the same: {said:?}");
    }
    Ok(Shown::Yes)
}

/// In which of its lives it said whose machine it is, and that nothing is sent to it in another: there it may be another machine.
pub(super) async fn life(rig: &Rig<'_>) -> Checked {
    if !rig.driver.epoch_is_a_session() {
        return Ok(Shown::NotHere);
    }
    let said = rig.driver.identify(&rig.reading_call()).await;
    let reading = rig.must_read().await?;
    if reading.epoch.is_none() {
        return Ok(Shown::NotHere);
    }
    let said = said.map_err(|error| format!("it does not say who it is: {error}"))?;
    ensure!(
        said.epoch == reading.epoch,
        "asked whose machine it is, and read, in one session: {:?}, {:?}",
        said.epoch,
        reading.epoch
    );
    let elsewhere = Some(said.epoch.map_or(0, |epoch| epoch.id) + 1_000);
    let refused = |what: &str, sent: Result<String, DriverError>| match sent {
        Err(error) if error.effect == Effect::DidNotHappen => Ok(()),
        Err(error) => Err(format!("{what} in another life came to {error:?}")),
        Ok(sent) => Err(format!("{what} was sent in another life than it was identified in: {sent}")),
    };
    let order = rig.orders.off().await?;
    let off = rig.driver.power_off(&order, &rig.call().in_life(elsewhere)).await;
    refused("an off", off.map(|taken| format!("{taken:?}")))?;
    ensure!(rig.subject.is_on().await, "an off that was refused switched it off");
    let (found, held) = (rig.inspect().await?, rig.subject.hold_state().await);
    if !found.is_empty() {
        let order = rig.orders.hold(&found).await?;
        let hold = rig.driver.engage_hold(&order, &rig.call().in_life(elsewhere)).await;
        refused("a hold", hold.map(|report| format!("{report:?}")))?;
        ensure!(rig.subject.hold_state().await == held, "a hold that was refused was engaged");
    }
    // In its own life all of it goes.
    let life = rig.must_read().await?.epoch.map(|epoch| epoch.id);
    let order = rig.orders.off().await?;
    let off = rig.driver.power_off(&order, &rig.call().in_life(life)).await;
    off.map_err(|error| format!("an off in the life in which it was identified was not taken: {error}"))?;
    rig.read_until(Power::Off, SETTLES).await?;
    rig.must_read().await?;
    let order = rig.orders.on_in(rig.driver.session()).await?;
    let on = rig.driver.power_on(order, &rig.call().in_life(elsewhere)).await;
    refused("an on", on.map(|taken| format!("{taken:?}")))?;
    ensure!(!rig.subject.is_on().await, "an on that was refused switched it on");
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
    silent_about(rig, &format!("{:?} {:?}", rig.driver.remarks(), rig.driver.never_alone()))?;
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
