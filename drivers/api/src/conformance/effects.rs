//! The checks of what is known of a command whose answer is lost, late or a refusal (S2, S10).

use std::time::Duration;

use picket_answers::device::{DriverError, Effect, Refusal};
use picket_core::power::Power;

use super::Trouble;
use super::checks::{Checked, SETTLES};
use super::rig::{Rig, Shown, ensure};

/// How long a call may take whose answers are all lost.
const IN_VAIN: Duration = Duration::from_secs(3);

/// Asked-at is when the first copy was sent: a later one never renews it.
pub(super) async fn first_copy(rig: &Rig<'_>) -> Checked {
    rig.must_read().await?;
    for what in ["reading", "off"] {
        if !rig.subject.hurt(Trouble::FirstCopyLost).await {
            return Ok(Shown::NotHere);
        }
        let (asked, answered) = if what == "reading" {
            let reading = rig.must_read().await?;
            (reading.asked_at, reading.answered_at)
        } else {
            let off = rig.off().await?;
            (off.asked_at, off.answered_at)
        };
        let lost = rig.subject.lost_at().await.ok_or("the subject lost nothing, and said that it would")?;
        ensure!(asked <= lost, "the {what}'s first copy was lost at {lost:?}, and it was asked at {asked:?}");
        ensure!(
            answered >= lost,
            "the {what} was answered at {answered:?}, before {lost:?}, when it was lost"
        );
        rig.subject.mend().await;
    }
    rig.read_until(Power::Off, SETTLES).await?;
    Ok(Shown::Yes)
}

/// What is done and not answered is not said to be undone.
pub(super) async fn lost_answer(rig: &Rig<'_>) -> Checked {
    for on in [false, true] {
        rig.subject.mend().await;
        rig.subject.set_power(!on).await;
        let rig = &Rig::new(rig.subject).await?;
        rig.must_read().await?;
        if !rig.subject.hurt(Trouble::AnswersLost).await {
            return Ok(Shown::NotHere);
        }
        let (what, ended) = if on {
            let order = rig.orders.on_in(rig.driver.session()).await?;
            let call = async |call| rig.driver.power_on(order, &call).await;
            ("an on", rig.in_time(IN_VAIN, "an on", call).await?)
        } else {
            let order = rig.orders.off().await?;
            let call = async |call| rig.driver.power_off(&order, &call).await;
            ("an off", rig.in_time(IN_VAIN, "an off", call).await?)
        };
        let error: DriverError = match ended {
            Ok(accepted) => return Err(format!("{what} was not answered, and the driver says {accepted:?}")),
            Err(error) => error,
        };
        let done = rig.subject.is_on().await == on;
        ensure!(
            !(done && error.effect == Effect::DidNotHappen),
            "{what} was done, and the error says that it was not: {error:?}"
        );
        rig.subject.mend().await;
        rig.leave().await;
    }
    Ok(Shown::Yes)
}

/// A refusal is no acceptance; and where the driver tells it as the device's own answer, it is of that time and of that life, also of a
/// machine that is off already (S2).
pub(super) async fn refused(rig: &Rig<'_>) -> Checked {
    rig.must_read().await?;
    if !rig.subject.hurt(Trouble::Refuses).await {
        return Ok(Shown::NotHere);
    }
    let refusal = refusal(rig, false).await?;
    let reading = rig.must_read().await?;
    ensure!(reading.power == Power::On, "it refused an off, is on, and the driver says {reading:?}");
    ensure!(rig.subject.is_on().await, "the subject refused, and did it");
    if refusal.is_none() {
        return Ok(Shown::Yes);
    }
    rig.subject.mend().await;
    rig.off().await?;
    let before = rig.read_until(Power::Off, SETTLES).await?;
    rig.subject.hurt(Trouble::Refuses).await;
    if let Some(again) = self::refusal(rig, true).await? {
        ensure!(
            again.epoch == before.epoch,
            "it refused in its life {:?}, and said so: {again:?}",
            before.epoch
        );
    }
    Ok(Shown::Yes)
}

/// An off that is refused: the device's own answer, where the driver tells it as one. `is_off`: what it says then may be how it says
/// "already off".
async fn refusal(rig: &Rig<'_>, is_off: bool) -> Result<Option<Refusal>, String> {
    let (order, began) = (rig.orders.off().await?, rig.clock.boot());
    let error = match rig.driver.power_off(&order, &rig.call_of(IN_VAIN)).await {
        Ok(accepted) if is_off && accepted.already => return Ok(None),
        Ok(accepted) => return Err(format!("it refused an off, and the driver says {accepted:?}")),
        Err(error) => error,
    };
    if let Some(refusal) = error.refusal {
        let times = [began, refusal.asked_at, refusal.answered_at, rig.clock.boot()];
        ensure!(
            times.is_sorted(),
            "it refused an off between {began:?} and now, and the driver says {refusal:?}"
        );
    }
    Ok(error.refusal)
}
