//! The checks of what a driver owes that knows the volumes of its machine ([`crate::volumes`]).

use std::time::Duration;

use picket_answers::device::{DriverError, Effect, ErrorKind};
use picket_core::ground::ReleasePermit;
use tokio::time::{Instant, sleep};

use super::checks::{Checked, SETTLES, SHORT, is_silence};
use super::rig::{Rig, Shown, ensure};
use super::{Storage, Trouble, VolumeTrouble};
use crate::call::Call;
use crate::volumes::{Standing, Volume, VolumeAt, Volumes};

/// How long a detach takes that takes its time.
const GOES: Duration = Duration::from_millis(1_500);
/// How long one whose end nothing bounds may take effect, as its order says.
const LIFE: Duration = Duration::from_secs(600);

/// What the checks share: the driver's volumes, and whoever knows the truth of them.
struct Bench<'a> {
    rig: &'a Rig<'a>,
    volumes: &'a dyn Volumes,
    storage: &'a dyn Storage,
}

impl<'a> Bench<'a> {
    /// `None`: the driver knows of no volumes, or nobody here has any. Its machine is off then, as one is whose volumes are let go.
    async fn of(rig: &'a Rig<'a>) -> Result<Option<Self>, String> {
        let (volumes, storage) = match (rig.driver.volumes(), rig.subject.storage()) {
            (Some(volumes), Some(storage)) => (volumes, storage),
            (None, None) => return Ok(None),
            (Some(_), None) => return Err("it knows of volumes, and nobody shows any".to_owned()),
            (None, Some(_)) => return Err("its machine has volumes, and it knows of none".to_owned()),
        };
        rig.subject.set_power(false).await;
        rig.must_read().await?;
        Ok(Some(Self { rig, volumes, storage }))
    }

    async fn attached(&self) -> Result<Vec<Volume>, String> {
        let told = self.volumes.attached(&self.rig.reading_call()).await;
        told.map_err(|error| format!("what is attached is not told: {error}"))
    }

    /// What it tells of that one.
    async fn told(&self, volume: &VolumeAt) -> Result<Option<Volume>, String> {
        let mut told = self.attached().await?;
        told.retain(|one| one.at.id == volume.id);
        ensure!(told.len() < 2, "one volume is told more than once: {told:?}");
        Ok(told.pop())
    }

    /// One attempt, as an engine makes it.
    async fn detach(&self, volume: &VolumeAt) -> Result<Result<(), DriverError>, String> {
        let call = self.rig.call();
        self.detach_in(volume, &call, async |_| ()).await
    }

    /// The same in that call; `before` it is sent.
    async fn detach_in(
        &self,
        volume: &VolumeAt,
        call: &Call,
        before: impl AsyncFnOnce(&ReleasePermit<'_>),
    ) -> Result<Result<(), DriverError>, String> {
        let releasing = self.rig.orders.release(self.volumes.max_in_flight().unwrap_or(LIFE)).await?;
        let permit = self.rig.orders.release_permit(&releasing).await?;
        before(&permit).await;
        Ok(self.volumes.detach(&releasing.order, &permit, volume, false, call).await)
    }

    /// An attempt whose look grew old on its way is made anew, as by an engine: a peer on a busy machine takes its time.
    async fn taken(&self, volume: &VolumeAt) -> Result<(), String> {
        loop {
            match self.detach(volume).await? {
                Err(error)
                    if error.effect == Effect::DidNotHappen
                        && error.detail.contains("seen off longer than") => {}
                answer => return answer.map_err(|error| format!("the detach was not taken: {error}")),
            }
        }
    }

    async fn standing(&self, volume: &VolumeAt) -> Result<Standing, String> {
        let standing = self.volumes.standing(volume, &self.rig.reading_call()).await;
        standing.map_err(|error| format!("how far it is, is not told: {error}"))
    }

    async fn is_ours(&self, volume: &VolumeAt) -> bool {
        self.storage.owners(volume).await.ours
    }

    /// Asks until it is said to be free, which must be true when it is said; and while it is not, it is told as attached.
    async fn until_free(&self, volume: &VolumeAt) -> Result<(), String> {
        let deadline = Instant::now() + SETTLES;
        loop {
            let told = self.told(volume).await?;
            ensure!(
                told.is_some() || !self.is_ours(volume).await,
                "its machine has it, and it is not told as attached"
            );
            let standing = self.standing(volume).await?;
            let is_ours = self.is_ours(volume).await;
            match standing {
                Standing::Free(_) if is_ours => {
                    return Err(format!("its machine has it, and the driver says {standing:?}"));
                }
                Standing::Free(_) => return Ok(()),
                _ if Instant::now() >= deadline => {
                    return Err(format!("after {SETTLES:?} it is not free, but {standing:?}"));
                }
                _ => sleep(self.rig.pace()).await,
            }
        }
    }
}

macro_rules! bench {
    ($rig:expr) => {
        match Bench::of($rig).await? {
            Some(bench) => bench,
            None => return Ok(Shown::NotHere),
        }
    };
}

pub(super) async fn listed(rig: &Rig<'_>) -> Checked {
    let bench = bench!(rig);
    let (first, second) = (bench.storage.attach().await, bench.storage.attach().await);
    let told = bench.attached().await?;
    for volume in [&first, &second] {
        let of_it: Vec<&Volume> = told.iter().filter(|one| one.at.id == volume.id).collect();
        let is_whole = of_it.len() == 1 && of_it.iter().all(|one| one.at == *volume && one.stays.is_none());
        ensure!(is_whole, "{volume:?} is attached and may go, and is told as {of_it:?}");
        let standing = bench.standing(volume).await?;
        ensure!(
            matches!(standing, Standing::Attached(_)),
            "{volume:?} is attached, and told as {standing:?}"
        );
    }
    let root = bench.storage.root().await;
    let stays: Vec<&str> =
        told.iter().filter(|one| one.stays.is_some()).map(|one| one.at.id.as_str()).collect();
    ensure!(
        stays == [root.as_str()],
        "the root {root} stays and nothing else, and these are told to stay: {stays:?}"
    );
    bench.storage.hand_over(&second).await;
    let gone = bench.told(&second).await?;
    ensure!(gone.is_none(), "it was taken away by hand, and an old answer came: {gone:?}");
    ensure!(bench.told(&first).await?.is_some(), "another one was taken away, and it is told no more");
    Ok(Shown::Yes)
}

pub(super) async fn one_place(rig: &Rig<'_>) -> Checked {
    let bench = bench!(rig);
    let (volume, other) = (bench.storage.attach().await, bench.storage.attach().await);
    bench.taken(&volume).await?;
    bench.until_free(&volume).await?;
    bench.taken(&volume).await.map_err(|error| format!("a second time: {error}"))?;
    bench.until_free(&volume).await?;
    ensure!(bench.is_ours(&other).await, "one volume was to go, and another one went");
    ensure!(bench.told(&other).await?.is_some(), "one volume was to go, and another one is told no more");
    let root = bench.storage.root().await;
    let stays = bench.attached().await?.into_iter().any(|one| one.at.id == root && one.stays.is_some());
    ensure!(stays, "one volume was to go, and the root {root} is not told any more");
    let heard = bench.storage.detaches(&volume).await;
    ensure!(!heard.is_empty(), "it went, and the driver told nobody to let it go");
    let vague = heard.iter().filter(|one| !one.names_machine || !one.names_place).count();
    ensure!(vague == 0, "a detach names its machine and the place there, and {vague} did not: {heard:?}");
    Ok(Shown::Yes)
}

pub(super) async fn going(rig: &Rig<'_>) -> Checked {
    let bench = bench!(rig);
    let volume = bench.storage.attach().await;
    if !bench.storage.hurt(VolumeTrouble::SlowDetach(GOES)).await {
        return Ok(Shown::NotHere);
    }
    bench.taken(&volume).await?;
    ensure!(bench.is_ours(&volume).await, "the subject was to let it go slowly, and it is gone");
    // A second detach comes after an answer that was lost: it is no fault.
    if let Err(error) = bench.detach(&volume).await? {
        ensure!(
            error.kind == ErrorKind::Throttled,
            "it goes already, and asked again the driver says {error:?}"
        );
    }
    bench.until_free(&volume).await?;
    Ok(Shown::Yes)
}

pub(super) async fn new_owner(rig: &Rig<'_>) -> Checked {
    let bench = bench!(rig);
    let volume = bench.storage.attach().await;
    ensure!(bench.told(&volume).await?.is_some(), "it is attached, and not told");
    bench.storage.hand_over(&volume).await;
    // That it is not there may be an error or none; it is let alone.
    if let Err(error) = bench.detach(&volume).await? {
        ensure!(error.effect == Effect::DidNotHappen, "another machine has it, and yet {error:?}");
    }
    bench.until_free(&volume).await?;
    let owners = bench.storage.owners(&volume).await;
    ensure!(owners.others == 1, "another machine had it, and it was taken from there: {owners:?}");
    Ok(Shown::Yes)
}

pub(super) async fn several(rig: &Rig<'_>) -> Checked {
    let bench = bench!(rig);
    let Some(volume) = bench.storage.shared().await else { return Ok(Shown::NotHere) };
    let before = bench.storage.owners(&volume).await;
    ensure!(before.ours && before.others == 1, "two machines were to have it: {before:?}");
    bench.taken(&volume).await?;
    bench.until_free(&volume).await?;
    let owners = bench.storage.owners(&volume).await;
    ensure!(owners.others == 1, "another machine had it too, and it was taken from there: {owners:?}");
    Ok(Shown::Yes)
}

pub(super) async fn no_permit(rig: &Rig<'_>) -> Checked {
    let bench = bench!(rig);
    let volume = bench.storage.attach().await;
    let refused = |result: Result<(), DriverError>, what: &str| match result {
        Err(error) if error.kind == ErrorKind::NotLeader && error.effect == Effect::DidNotHappen => Ok(()),
        other => Err(format!("{what}, and the detach ended as {other:?}")),
    };
    let reading = bench.detach_in(&volume, &rig.reading_call(), async |_| ()).await?;
    refused(reading, "its call may only read")?;
    let call = rig.call();
    let ended = bench.detach_in(&volume, &call, async |_| rig.orders.permit().end()).await?;
    refused(ended, "its leadership had ended")?;
    let heard = bench.storage.detaches(&volume).await;
    ensure!(heard.is_empty(), "without a permit a detach was sent: {heard:?}");
    ensure!(bench.is_ours(&volume).await, "without a permit it was let go");
    Ok(Shown::Yes)
}

pub(super) async fn no_word(rig: &Rig<'_>) -> Checked {
    let bench = bench!(rig);
    let volume = bench.storage.attach().await;
    let mut shown = Shown::NotHere;
    // `None`: silence.
    for trouble in [Some(VolumeTrouble::Garbled), Some(VolumeTrouble::Cut), None] {
        rig.subject.mend().await;
        ensure!(bench.told(&volume).await?.is_some(), "before {trouble:?} it is attached, and not told");
        let is_hurt = match trouble {
            Some(trouble) => bench.storage.hurt(trouble).await,
            None => rig.subject.hurt(Trouble::Silence).await,
        };
        if !is_hurt {
            continue;
        }
        shown = Shown::Yes;
        let life = if trouble.is_none() { SHORT } else { rig.life() };
        let attached = async |call: Call| bench.volumes.attached(&call).await;
        match rig.in_time(life, "what is attached", attached).await? {
            Ok(told) => {
                return Err(format!("{trouble:?}: no clear answer came, and the driver tells {told:?}"));
            }
            Err(error) => {
                ensure!(error.effect == Effect::DidNotHappen, "a question changes nothing: {error:?}");
                let silent = trouble.is_some() || is_silence(&error);
                ensure!(silent, "silence is neither timed out nor unreachable: {error:?}");
            }
        }
        let standing = async |call: Call| bench.volumes.standing(&volume, &call).await;
        if let Ok(standing) = rig.in_time(life, "how far one is", standing).await? {
            return Err(format!("{trouble:?}: no clear answer came, and the driver says {standing:?}"));
        }
    }
    Ok(shown)
}

pub(super) async fn unanswered(rig: &Rig<'_>) -> Checked {
    let bench = bench!(rig);
    let volume = bench.storage.attach().await;
    if !bench.storage.hurt(VolumeTrouble::DetachUnanswered).await {
        return Ok(Shown::NotHere);
    }
    let call = rig.call_of(SHORT.max(rig.life() / 10));
    let told = bench.detach_in(&volume, &call, async |_| ()).await?;
    rig.subject.mend().await;
    ensure!(!bench.storage.detaches(&volume).await.is_empty(), "the subject was to hear the detach");
    match told {
        // It found out that it was taken: then it goes, and nobody tells it again.
        Ok(()) => bench.until_free(&volume).await?,
        Err(error) => {
            let unknown = error.effect == Effect::Unknown;
            ensure!(unknown, "the detach may have been done, and the driver says {error:?}");
            bench.taken(&volume).await?;
            bench.until_free(&volume).await?;
        }
    }
    // Nothing is heard, and nothing done.
    let volume = bench.storage.attach().await;
    ensure!(bench.told(&volume).await?.is_some(), "it is attached, and not told");
    if rig.subject.hurt(Trouble::Silence).await {
        let call = rig.call_of(SHORT);
        let told = bench.detach_in(&volume, &call, async |_| ()).await?;
        ensure!(told.is_err(), "nothing was heard, and the driver says that the detach was taken");
    }
    Ok(Shown::Yes)
}
