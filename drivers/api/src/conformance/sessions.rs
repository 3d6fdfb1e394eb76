//! The checks of what bounds a command: sessions that end, and what is declared of those that do not (S8).

use std::time::Duration;

use picket_answers::device::Effect;
use picket_core::power::Power;
use tokio::time::sleep;

use super::Trouble;
use super::checks::{Checked, SETTLES, SHORT};
use super::rig::{Rig, Shown, ensure};

/// How late a copy is, and by when it surely came.
const LATE: Duration = Duration::from_millis(1_500);
const CAME: Duration = Duration::from_secs(3);

pub(super) async fn quiesce(rig: &Rig<'_>) -> Checked {
    rig.quiesce().await.map_err(|error| format!("nothing was open: {error}"))?;
    let before = rig.must_read().await?.epoch;
    rig.off().await?;
    let open = rig.subject.sessions().await;
    rig.quiesce().await.map_err(|error| format!("the session was not ended: {error}"))?;
    let left = rig.subject.sessions().await;
    if let (Some(open), Some(left)) = (open, left) {
        ensure!(left < open, "its session was ended, as the driver says; open were {open}, and are {left}");
    }
    let after = rig.must_read().await?.epoch;
    if let (Some(before), Some(after)) = (before, after) {
        if !rig.driver.epoch_is_a_session() {
            ensure!(
                after == before,
                "it is the same machine, and the epoch is another: {before:?}, {after:?}"
            );
            return Ok(Shown::Yes);
        }
        ensure!(after.id > before.id, "the session was ended, and the epoch is the same: {after:?}");
        ensure!(!after.begins_after_loss(), "we ended the session, and the driver says {after:?}");
    }
    Ok(Shown::Yes)
}

/// Nothing says that the session ended: then it may be open.
pub(super) async fn silent_quiesce(rig: &Rig<'_>) -> Checked {
    rig.must_read().await?;
    rig.off().await?;
    rig.read_until(Power::Off, SETTLES).await?;
    if rig.subject.sessions().await.is_none_or(|open| open == 0) {
        return Ok(Shown::NotHere);
    }
    if !rig.subject.hurt(Trouble::Silence).await {
        return Ok(Shown::NotHere);
    }
    let ended = rig.in_time(SHORT, "a quiesce", async |call| rig.driver.quiesce(&call).await).await?;
    ensure!(ended.is_err(), "its session's end was not answered, and the driver says that it ended");
    rig.subject.mend().await;
    Ok(Shown::Yes)
}

/// A copy that the network kept comes when the session is over.
pub(super) async fn late_copy(rig: &Rig<'_>) -> Checked {
    if rig.driver.traits().max_in_flight.off.is_none() {
        return Ok(Shown::NotHere);
    }
    rig.must_read().await?;
    if !rig.subject.hurt(Trouble::LateCopies(LATE)).await {
        return Ok(Shown::NotHere);
    }
    rig.off().await?;
    rig.read_until(Power::Off, SETTLES).await?;
    rig.quiesce().await.map_err(|error| format!("the session was not ended: {error}"))?;
    rig.subject.set_power(true).await;
    sleep(CAME).await;
    ensure!(rig.subject.is_on().await, "its session was ended, and a late copy of its off was executed");
    Ok(Shown::Yes)
}

/// What comes between the store's word and the packet is bounded by the session in which power was read.
pub(super) async fn on_alone(rig: &Rig<'_>) -> Checked {
    if rig.subject.sessions().await.is_none() {
        return Ok(Shown::NotHere);
    }
    rig.subject.set_power(false).await;
    let (order, before) = (rig.orders.on().await?, rig.subject.commands().await);
    let error = match rig.driver.power_on(order, &rig.call()).await {
        Ok(accepted) => return Err(format!("there was no session, and an on was sent: {accepted:?}")),
        Err(error) => error,
    };
    ensure!(error.effect == Effect::DidNotHappen, "there was no session, and yet {error:?}");
    let after = rig.subject.commands().await;
    ensure!(before == after, "there was no session, and it heard commands: {before:?}, then {after:?}");
    ensure!(!rig.subject.is_on().await, "there was no session, and it was switched on");
    rig.on().await?;
    rig.read_until(Power::On, SETTLES).await?;
    Ok(Shown::Yes)
}

pub(super) async fn bounds(rig: &Rig<'_>) -> Checked {
    let traits = rig.driver.traits();
    let own = traits.max_in_flight;
    for times in 1..=3 {
        let with = rig.driver.max_in_flight(traits.call * times);
        for (what, own, with) in [("off", own.off, with.off), ("on", own.on, with.on)] {
            let less = match (own, with) {
                (Some(own), Some(with)) => with < own || own.is_zero(),
                (None, Some(_)) => true,
                (_, None) => false,
            };
            ensure!(!less, "an {what} lives {own:?} by its traits, and {with:?} where a call is longer");
        }
    }
    if let Some(limit) = rig.subject.idle_limit() {
        for (what, own) in [("off", own.off), ("on", own.on)] {
            let holds = own.is_none_or(|life| life >= limit);
            ensure!(holds, "an {what} may land until the session ends after {limit:?}, and lives {own:?}");
        }
    }
    let other = rig.subject.driver();
    ensure!(!traits.endpoint.trim().is_empty(), "nobody can tell which device it is");
    ensure!(other.traits() == traits, "two drivers of one device differ: {traits:?}, {:?}", other.traits());
    Ok(Shown::Yes)
}
