//! The checks of what boards in the field do: what is general of it, and no fault of any one protocol.

use std::time::Duration;

use picket_answers::device::{DriverError, Effect, ErrorKind};
use picket_core::power::Power;
use tokio::time::{Instant, sleep, timeout};

use super::Trouble;
use super::checks::{Checked, SETTLES};
use super::rig::{Rig, Shown, ensure};

/// How long a call may take that is refused, or comes to nothing.
const IN_VAIN: Duration = Duration::from_secs(3);
/// How late a slow answer is: longer than a datagram is first waited for, and much shorter than a call.
const SLOW: Duration = Duration::from_millis(400);
/// Readings by which a driver learns how slow it is.
const LEARNING: usize = 4;

/// The device's own answer to an off of a machine that is off: it is told as one, of that time and that life, and takes nothing back
/// of what was taken before (S2). Whether it was surely not done is not asked: an HTTP 500 leaves that open (S10).
pub(super) async fn refused_repeat(rig: &Rig<'_>) -> Checked {
    rig.must_read().await?;
    rig.off().await?;
    let before = rig.read_until(Power::Off, SETTLES).await?;
    if !rig.subject.hurt(Trouble::RepeatRefused).await {
        return Ok(Shown::NotHere);
    }
    let (order, began) = (rig.orders.off().await?, rig.clock.boot());
    let mut life = IN_VAIN;
    let error: DriverError = loop {
        let error = match rig.driver.power_off(&order, &rig.call_of(life)).await {
            Ok(accepted) => {
                return Err(format!("it refused a repeated off, and the driver says {accepted:?}"));
            }
            Err(error) => error,
        };
        // A busy machine may hear the last refusal after the call's end: such a call shows nothing.
        if error.refusal.is_some() || error.kind != ErrorKind::TimedOut || life >= rig.life() {
            break error;
        }
        life *= 2;
    };
    let Some(refusal) = error.refusal else {
        return Err(format!("it refused a repeated off itself, and the driver does not say so: {error:?}"));
    };
    let times = [began, refusal.asked_at, refusal.answered_at, rig.clock.boot()];
    ensure!(times.is_sorted(), "it refused between {began:?} and now, and the driver says {refusal:?}");
    ensure!(
        refusal.epoch == before.epoch,
        "it refused in its life {:?}, and said so: {refusal:?}",
        before.epoch
    );
    let after = rig.must_read().await?;
    ensure!(
        (after.power, after.epoch) == (Power::Off, before.epoch),
        "it refused a repeated off, and by that {before:?} became {after:?}"
    );
    Ok(Shown::Yes)
}

/// A slow device is asked once, within the call, and its answer is as old as the question.
pub(super) async fn slow_answers(rig: &Rig<'_>) -> Checked {
    if !rig.subject.hurt(Trouble::SlowAnswers(SLOW)).await {
        return Ok(Shown::NotHere);
    }
    for _ in 0..LEARNING {
        let reading = rig.must_read().await?;
        ensure!(reading.power == Power::On, "it is on, and says so late: {reading:?}");
        let took = reading.answered_at.since(reading.asked_at);
        ensure!(took >= SLOW, "each answer takes {SLOW:?}, and the driver says {reading:?}");
    }
    let identity = rig.driver.identify(&rig.reading_call()).await;
    identity.map_err(|error| format!("late, it does not say who it is: {error}"))?;
    let found = rig.inspect().await?;
    rig.engage(&found).await?;
    rig.disengage(&found).await?;
    let before = rig.subject.commands().await;
    let off = rig.off().await?;
    let after = rig.subject.commands().await;
    let took = off.answered_at.since(off.asked_at);
    ensure!(took >= SLOW, "each answer takes {SLOW:?}, and the driver says {off:?}");
    // On a busy machine an answer takes longer than the ones before it, and a copy may be right.
    let in_time = took < SLOW + SLOW / 4;
    if let (Some(before), Some(after)) = (before, after)
        && in_time
        && rig.subject.hears_the_driver()
    {
        ensure!(after == before + 1, "an off that was answered was sent {} times", after - before);
    }
    rig.read_until(Power::Off, SETTLES).await?;
    rig.subject.mend().await;
    Ok(Shown::Yes)
}

/// A driver makes nothing up that is missing of an answer; once answers arrive whole again, it works as before.
pub(super) async fn cut_answers(rig: &Rig<'_>) -> Checked {
    for on in [true, false] {
        rig.subject.set_power(on).await;
        let rig = &Rig::new(rig.subject).await?;
        rig.must_read().await?;
        if !rig.subject.hurt(Trouble::CutAnswers).await {
            return Ok(Shown::NotHere);
        }
        let read = rig.in_time(IN_VAIN, "a reading", async |call| rig.driver.read_power(&call).await).await?;
        match read {
            Ok(reading) => {
                ensure!(reading.power == Power::Unknown, "half of its answer came: {reading:?}");
            }
            Err(error) => {
                ensure!(error.effect == Effect::DidNotHappen, "a question changes nothing: {error:?}");
            }
        }
        goes_on(rig, on).await?;
    }
    rig.subject.set_power(true).await;
    rig.must_read().await?;
    rig.subject.hurt(Trouble::CutAnswers).await;
    let order = rig.orders.off().await?;
    let off = rig.in_time(IN_VAIN, "an off", async |call| rig.driver.power_off(&order, &call).await).await?;
    let is_on = rig.subject.is_on().await;
    match off {
        // The head may say all that there is to say.
        Ok(accepted) => ensure!(!is_on, "the off was not done, and the driver says {accepted:?}"),
        Err(error) => ensure!(
            is_on || error.effect == Effect::Unknown,
            "the off was done, and the error says that it was not: {error:?}"
        ),
    }
    goes_on(rig, is_on).await?;
    Ok(Shown::Yes)
}

/// Mended, it is read as it is, at once, and may be switched off.
async fn goes_on(rig: &Rig<'_>, is_on: bool) -> Result<(), String> {
    rig.subject.mend().await;
    let reading = rig.must_read().await.map_err(|error| format!("it answers again: {error}"))?;
    let says = if is_on { Power::On } else { Power::Off };
    ensure!(reading.power == says, "it answers again, is on: {is_on}, and the driver says {reading:?}");
    rig.off().await.map_err(|error| format!("it answers again: {error}"))?;
    rig.read_until(Power::Off, SETTLES).await?;
    rig.leave().await;
    Ok(())
}

/// A request that is redirected to the same place was not done, and is sent there: questions and commands alike.
pub(super) async fn redirects(rig: &Rig<'_>) -> Checked {
    if !rig.subject.hurt(Trouble::Redirects).await {
        return Ok(Shown::NotHere);
    }
    let identity = rig.driver.identify(&rig.reading_call()).await;
    identity.map_err(|error| format!("redirected, it does not say who it is: {error}"))?;
    ensure!(rig.must_read().await?.power == Power::On, "it is on, and redirects to where it says so");
    let (found, free) = (rig.inspect().await?, rig.subject.hold_state().await);
    rig.engage(&found).await?;
    rig.disengage(&found).await?;
    let after = rig.subject.hold_state().await;
    ensure!(after == free, "not put back: the device had {free:?} and has {after:?}");
    let before = rig.subject.commands().await;
    rig.off().await?;
    let after = rig.subject.commands().await;
    if let (Some(before), Some(after)) = (before, after) {
        ensure!(after == before + 1, "one off was redirected, and {} were heard", after - before);
    }
    rig.read_until(Power::Off, SETTLES).await?;
    let open = rig.subject.sessions().await;
    rig.quiesce().await.map_err(|error| format!("the session was not ended: {error}"))?;
    let left = rig.subject.sessions().await;
    if let (Some(open), Some(left)) = (open, left) {
        ensure!(left < open, "its session was ended, as the driver says; open were {open}, and are {left}");
    }
    rig.on().await?;
    rig.read_until(Power::On, SETTLES).await?;
    rig.leave().await;
    rig.subject.mend().await;
    Ok(Shown::Yes)
}

/// A board has few sessions, and keeps those that nobody knows: whoever gives up a login ends what it opened.
pub(super) async fn left_sessions(rig: &Rig<'_>) -> Checked {
    let Some(before) = rig.subject.sessions().await else { return Ok(Shown::NotHere) };
    for trouble in [Trouble::WrongCredentials, Trouble::UselessLogins] {
        if rig.subject.hurt(trouble).await {
            for _ in 0..3 {
                let rig = &Rig::new(rig.subject).await?;
                let read = rig.driver.read_power(&rig.call_of(IN_VAIN)).await;
                ensure!(read.is_err(), "{trouble:?}: no login was of use, and the driver says {read:?}");
                rig.leave().await;
                // A busy machine may come to the end of that time before it has ended anything.
                if rig.subject.sessions().await.is_some_and(|left| left > before) {
                    let _ = rig.quiesce().await;
                }
            }
            none_is_left(rig, before, SETTLES).await.map_err(|left| format!("{trouble:?}: {left}"))?;
        }
        rig.subject.mend().await;
    }
    for wait in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55].map(Duration::from_millis) {
        let rig = &Rig::new(rig.subject).await?;
        let _ = timeout(wait, rig.read()).await;
        // The next caller goes on with the login, or its session was ended.
        rig.must_read().await?;
        rig.quiesce().await.map_err(|error| format!("the session was not ended: {error}"))?;
    }
    let within = SETTLES + rig.subject.half_logins_last().unwrap_or_default();
    none_is_left(rig, before, within).await.map_err(|left| format!("callers left at any moment: {left}"))?;
    Ok(Shown::Yes)
}

/// The last word to a board may still be on its way.
async fn none_is_left(rig: &Rig<'_>, before: u64, within: Duration) -> Result<(), String> {
    let ends = Instant::now() + within;
    loop {
        match rig.subject.sessions().await {
            Some(left) if left <= before => return Ok(()),
            left if Instant::now() >= ends => {
                return Err(format!("{before} sessions were open, and after {within:?} {left:?}"));
            }
            _ => sleep(rig.pace()).await,
        }
    }
}
