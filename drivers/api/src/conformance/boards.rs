//! The checks of what boards in the field do: what is general of it, and no fault of any one protocol.

use std::time::Duration;

use picket_core::power::Power;

use super::Trouble;
use super::checks::{Checked, SETTLES};
use super::rig::{Rig, Shown, ensure};
use crate::error::DriverError;

/// How long a call may take that is refused.
const IN_VAIN: Duration = Duration::from_secs(3);

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
    let error: DriverError = match rig.driver.power_off(&order, &rig.call_of(IN_VAIN)).await {
        Ok(accepted) => return Err(format!("it refused a repeated off, and the driver says {accepted:?}")),
        Err(error) => error,
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
