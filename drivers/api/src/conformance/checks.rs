//! The checks, each for one duty of a driver: their list, and those of power and epochs.

use std::pin::Pin;
use std::time::Duration;

use picket_answers::device::{DriverError, Effect, ErrorKind};
use picket_core::power::Power;

use super::Trouble;
use super::boards::{cut_answers, left_sessions, redirects, refused_repeat, slow_answers};
use super::duties::{
    cancelled, credentials, doubled, hold, identity, life, named_sessions, secrets, together,
};
use super::effects::{first_copy, lost_answer, refused};
use super::permits::{each_copy, looking, no_permit, under_way};
use super::rig::{Rig, Shown, ensure};
use super::sessions::{bounds, late_copy, on_alone, quiesce, silent_quiesce};
use super::volumes;

type Body = for<'a> fn(&'a Rig<'a>) -> Pin<Box<dyn Future<Output = Checked> + Send + 'a>>;
pub(super) type Checked = Result<Shown, String>;

macro_rules! checks {
    ($name:ident: $($words:literal => $check:path),* $(,)?) => {
        pub(super) const $name: &[(&str, Body)] = &[$(($words, |rig| Box::pin($check(rig)))),*];
    };
}

checks! {
    ALL:
    "off and on are done, seen, and repeated without an error" => off_and_on,
    "readings are stamped, fresh, and of one epoch" => readings,
    "already off as an error is no error" => already_off,
    "an off that takes time is not off before it is" => slow_fall,
    "neither On nor Off is Unknown" => nonsense,
    "silence is an error, in time, and never Off" => silence,
    "a restart begins an epoch after loss" => restart,
    "after a restart no off is sent before a reading" => sight,
    "nothing is sent in another life than that in which it was identified" => life,
    "after a quiesce a new epoch begins, fresh" => quiesce,
    "a quiesce that is not answered is none" => silent_quiesce,
    "after a quiesce no late copy is executed" => late_copy,
    "no session is opened for an on" => on_alone,
    "what it declares of its bounds holds" => bounds,
    "a question is as old as its first copy" => first_copy,
    "an answer that is lost leaves the effect unknown" => lost_answer,
    "what is refused is not taken" => refused,
    "a repeated off that is refused takes nothing back" => refused_repeat,
    "answers that come late are answers, and nothing is asked twice" => slow_answers,
    "an answer that is cut short is never Off, and shuts nobody out" => cut_answers,
    "a redirect to the same place is followed, once" => redirects,
    "no login leaves a session behind" => left_sessions,
    "without a permit nothing is sent" => no_permit,
    "a permit that ends under way lets nothing more go" => under_way,
    "the permit is asked before each command" => each_copy,
    "looking changes nothing" => looking,
    "calls at the same time are put in order" => together,
    "a caller may leave at any moment" => cancelled,
    "packets that arrive twice change nothing" => doubled,
    "a hold is put back as it was found" => hold,
    "it says who it is, and asks each time" => identity,
    "wrong credentials are said, and have no effect" => credentials,
    "what is stored with a session goes in no other, and a successor ends it" => named_sessions,
    "no secret is printed" => secrets,
}

checks! {
    OF_VOLUMES:
    "what is attached is told in full, and the root stays" => volumes::listed,
    "a detach names machine and place, and two are one" => volumes::one_place,
    "a volume that goes is not free before it is" => volumes::going,
    "what another machine has by now stays there" => volumes::new_owner,
    "of several machines one alone loses it" => volumes::several,
    "without a permit no volume is let go" => volumes::no_permit,
    "no clear answer is no word on volumes" => volumes::no_word,
    "a detach that is not answered may have been done" => volumes::unanswered,
}

/// How long a fall or rise may take on a device that is not hurt.
pub(super) const SETTLES: Duration = Duration::from_secs(20);
/// A call that is meant to end at its deadline.
pub(super) const SHORT: Duration = Duration::from_millis(1_200);

async fn off_and_on(rig: &Rig<'_>) -> Checked {
    ensure!(rig.must_read().await?.power == Power::On, "it is on, and the driver does not say so");
    let off = rig.off().await?;
    ensure!(off.asked_at <= off.answered_at, "the off was answered before it was asked: {off:?}");
    ensure!(
        off.epoch.is_some() || !rig.driver.has_epochs(),
        "it tells its restarts, and {off:?} has no epoch"
    );
    let reading = rig.read_until(Power::Off, SETTLES).await?;
    ensure!(reading.asked_at >= off.answered_at, "{reading:?} was asked for before {off:?} was answered");
    ensure!(reading.epoch == off.epoch, "off and reading have different epochs: {off:?}, {reading:?}");
    rig.off().await.map_err(|error| format!("a second off: {error}"))?;
    rig.read_until(Power::Off, SETTLES).await?;
    rig.quiesce().await.map_err(|error| format!("the session was not ended: {error}"))?;
    ensure!(!rig.subject.is_on().await, "it was off, and nobody switched it on but the driver");
    rig.on().await?;
    rig.read_until(Power::On, SETTLES).await?;
    ensure!(rig.subject.is_on().await, "it says On, and is off");
    rig.on().await.map_err(|error| format!("a second on: {error}"))?;
    rig.read_until(Power::On, SETTLES).await?;
    Ok(Shown::Yes)
}

async fn readings(rig: &Rig<'_>) -> Checked {
    let first = rig.must_read().await?;
    rig.subject.set_power(false).await;
    let second = rig.must_read().await?;
    ensure!(second.power == Power::Off, "it was switched off by hand, and an old answer came: {second:?}");
    rig.subject.set_power(true).await;
    let third = rig.must_read().await?;
    ensure!(third.power == Power::On, "it was switched on by hand, and an old answer came: {third:?}");
    ensure!(first.epoch == third.epoch, "two epochs without a loss: {first:?}, {third:?}");
    ensure!(first.answered_at <= third.asked_at, "the clock ran backwards: {first:?}, {third:?}");
    Ok(Shown::Yes)
}

async fn already_off(rig: &Rig<'_>) -> Checked {
    if !rig.subject.hurt(Trouble::AlreadyIsError).await {
        return Ok(Shown::NotHere);
    }
    rig.off().await?;
    rig.read_until(Power::Off, SETTLES).await?;
    let again = rig.off().await?;
    ensure!(again.already, "the device said that it was off already, and the driver does not: {again:?}");
    Ok(Shown::Yes)
}

async fn slow_fall(rig: &Rig<'_>) -> Checked {
    if !rig.subject.hurt(Trouble::SlowFall(Duration::from_millis(1_500))).await {
        return Ok(Shown::NotHere);
    }
    rig.must_read().await?;
    rig.off().await?;
    rig.read_until(Power::Off, SETTLES).await?;
    Ok(Shown::Yes)
}

async fn nonsense(rig: &Rig<'_>) -> Checked {
    let mut shown = Shown::NotHere;
    for trouble in [Trouble::Nonsense, Trouble::Missing, Trouble::Transition, Trouble::Gone] {
        rig.subject.mend().await;
        for on in [true, false] {
            rig.subject.set_power(on).await;
            // Read as it was: an answer of then is none now.
            rig.read_until(if on { Power::On } else { Power::Off }, SETTLES).await?;
            if !rig.subject.hurt(trouble).await {
                break;
            }
            shown = Shown::Yes;
            match rig.read().await {
                Ok(reading) => {
                    ensure!(
                        reading.power == Power::Unknown,
                        "{trouble:?}: neither On nor Off was said: {reading:?}"
                    )
                }
                // Where nothing is there, that may be an error as well.
                Err(error) if trouble == Trouble::Gone => {
                    ensure!(error.effect == Effect::DidNotHappen, "a question changes nothing: {error:?}")
                }
                Err(error) => {
                    return Err(format!("{trouble:?}: there was an answer, and the driver says: {error}"));
                }
            }
            rig.subject.mend().await;
        }
    }
    Ok(shown)
}

pub(super) fn is_silence(error: &DriverError) -> bool {
    matches!(error.kind, ErrorKind::TimedOut | ErrorKind::Unreachable)
}

async fn silence(rig: &Rig<'_>) -> Checked {
    // Both with a session that was used before and without one.
    for warm in [false, true] {
        rig.subject.mend().await;
        rig.subject.set_power(true).await;
        let rig = &Rig::new(rig.subject).await?;
        if warm {
            rig.must_read().await?;
        }
        if !rig.subject.hurt(Trouble::Silence).await {
            return Ok(Shown::NotHere);
        }
        rig.subject.set_power(false).await;
        let reading =
            rig.in_time(SHORT, "a reading", async |call| rig.driver.read_power(&call).await).await?;
        let error = match reading {
            Ok(reading) => return Err(format!("nothing was answered, and the driver says {reading:?}")),
            Err(error) => error,
        };
        ensure!(is_silence(&error), "silence is neither timed out nor unreachable: {error:?}");
        rig.subject.set_power(true).await;
        let order = rig.orders.off().await?;
        let off =
            rig.in_time(SHORT, "an off", async |call| rig.driver.power_off(&order, &call).await).await?;
        let error = match off {
            Ok(accepted) => return Err(format!("nothing was answered, and the driver says {accepted:?}")),
            Err(error) => error,
        };
        ensure!(is_silence(&error), "silence is neither timed out nor unreachable: {error:?}");
        rig.subject.mend().await;
        let reading = rig.must_read().await.map_err(|error| format!("after the silence: {error}"))?;
        let done = reading.power == Power::Off;
        ensure!(
            !(done && error.effect == Effect::DidNotHappen),
            "the off was done, and the error said that it was not: {error:?}"
        );
        rig.off().await?;
        rig.read_until(Power::Off, SETTLES).await?;
        rig.subject.set_power(true).await;
    }
    Ok(Shown::Yes)
}

async fn restart(rig: &Rig<'_>) -> Checked {
    let before = rig.must_read().await?.epoch;
    if before.is_none() || !rig.subject.hurt(Trouble::Restart).await {
        return Ok(Shown::NotHere);
    }
    // The first reading may end in silence: that is how the loss is noticed.
    let mut after = None;
    for _ in 0..4 {
        if let Ok(reading) = rig.read().await {
            after = reading.epoch;
            break;
        }
    }
    let (Some(before), Some(after)) = (before, after) else {
        return Err("it restarted, and is not read any more".to_owned());
    };
    ensure!(after.id > before.id, "it restarted, and the epoch is the same: {before:?}, {after:?}");
    ensure!(after.begins_after_loss(), "its session was lost, and the driver says {after:?}");
    let same = rig.must_read().await?.epoch;
    ensure!(same == Some(after), "another epoch without another loss: {same:?}");
    Ok(Shown::Yes)
}

async fn sight(rig: &Rig<'_>) -> Checked {
    let before = rig.must_read().await?.epoch;
    if before.is_none() || !rig.subject.hurt(Trouble::Restart).await {
        return Ok(Shown::NotHere);
    }
    let order = rig.orders.off().await?;
    // The first may end in silence: that is how the loss is noticed. None may be taken.
    for _ in 0..2 {
        if let Ok(off) = rig.driver.power_off(&order, &rig.call()).await {
            return Err(format!("it restarted after the look, and the driver sent an off unseen: {off:?}"));
        }
    }
    ensure!(rig.subject.is_on().await, "an off was sent in an epoch in which nothing was read");
    let mut after = rig.read().await;
    for _ in 0..3 {
        if after.is_err() {
            after = rig.read().await;
        }
    }
    let after = after.map_err(|error| format!("after the restart: {error}"))?.epoch;
    let lost = after.is_some_and(|epoch| epoch.begins_after_loss()) && after != before;
    ensure!(lost, "its session was lost, and the driver says {after:?} after {before:?}");
    let off = rig.off().await.map_err(|error| format!("after a reading: {error}"))?;
    ensure!(off.epoch == after, "the off was taken in another epoch than the look: {off:?}, {after:?}");
    rig.read_until(Power::Off, SETTLES).await?;
    Ok(Shown::Yes)
}
