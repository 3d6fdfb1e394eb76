//! The kind `volumes`: the volumes of a machine whose device knows them, each detached, and seen to be
//! free, for itself.
//!
//! # Invariants
//!
//! - A detach names the machine and the place at which the volume is attached there.
//! - Only the far side's clear word that this machine does not have the volume is complete. Shown by
//!   `one_that_is_stuck_keeps_no_other_and_at_its_end_a_person_is_told_which_and_why`.
//! - A detach is forced only where the settings say so, and only late. Shown by
//!   `force_comes_only_where_the_settings_allow_it_and_only_at_last`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_answers::release::{Found, Progress, ReleaseError, Subject};
use picket_core::ground::ReleasePermit;
use picket_core::ids::DeviceId;
use picket_core::order::ReleaseOrder;
use picket_core::record::Part;
use picket_driver::{Call, DriverError, Effect, PowerDriver, Standing, Volume, VolumeAt, Volumes};
use picket_reach::Settings;
use tokio::time::Instant;

use crate::choice::Choice;
use crate::pace::Pace;
use crate::releaser::{Devices, ForNode, InParts, Releaser};

/// The longest that one call may take.
const LONGEST: Duration = Duration::from_secs(60);

/// As the settings have it.
#[derive(Clone, Debug)]
struct Asked {
    name: String,
    device: Option<DeviceId>,
    choice: Choice,
    forces: bool,
    pace: Pace,
}

/// The kind; of a node once it is bound to that.
#[derive(Debug)]
pub struct LetGo {
    asked: Asked,
    of: Option<OfNode>,
}

impl LetGo {
    /// Keys: `device` (which of the node's devices knows its volumes; default: the only one that does), `include` and `exclude`
    /// (tables of lists `id`, `name`, in which `*` stands for any text, and `tag`, `key` or `key=value`: with `include` only
    /// what it names goes, what `exclude` names stays), `force` (`never`, or `at_last`: once half of the deadline has passed).
    pub(crate) fn read(name: &str, settings: &mut Settings<'_>) -> Option<Self> {
        let device = settings.text("device").and_then(|text| match DeviceId::new(&text) {
            Ok(id) => Some(id),
            Err(error) => {
                settings.fault("device", error.to_string());
                None
            }
        });
        let choice = Choice::read(settings);
        let forces = settings.word("force", &["never", "at_last"]) == Some("at_last");
        let pace = Pace::read(settings, LONGEST);
        let asked = Asked { name: name.to_owned(), device, choice, forces, pace };
        Some(Self { asked, of: None })
    }
}

impl Asked {
    /// The device by which it works, of these.
    fn device_of(&self, devices: &Devices) -> Result<(DeviceId, Arc<dyn PowerDriver>), String> {
        let knows = |driver: &Arc<dyn PowerDriver>| driver.volumes().is_some();
        let all: Vec<&DeviceId> =
            devices.iter().filter(|(_, driver)| knows(driver)).map(|(id, _)| id).collect();
        let names = || all.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
        let id = match (&self.device, all.as_slice()) {
            (Some(id), _) if !devices.contains_key(id) => {
                return Err(format!(
                    "release {} works by device {id}, which the node does not have",
                    self.name
                ));
            }
            (Some(id), found) if !found.contains(&id) => {
                let others = if found.is_empty() { String::new() } else { format!("; {} would", names()) };
                return Err(format!(
                    "release {} works by device {id}, which knows nothing of volumes{others}",
                    self.name
                ));
            }
            (Some(id), _) => id,
            (None, [one]) => *one,
            (None, []) => {
                return Err(format!(
                    "release {} wants a device that knows the node's volumes, and it has none: only clouds' devices do",
                    self.name
                ));
            }
            (None, _) => {
                return Err(format!(
                    "release {} could work by {}: name one of them by `device` in the release",
                    self.name,
                    names()
                ));
            }
        };
        let driver = devices.get(id).cloned().ok_or_else(|| format!("there is no device {id}"))?;
        Ok((id.clone(), driver))
    }
}

#[async_trait]
impl Releaser for LetGo {
    fn max_in_flight(&self) -> Option<Duration> {
        self.of.as_ref()?.driver.volumes()?.max_in_flight()
    }

    fn pace(&self) -> Pace {
        self.asked.pace
    }

    fn of_node(&self, node: &ForNode<'_>) -> Result<Option<Arc<dyn Releaser>>, String> {
        let (device, driver) = self.asked.device_of(node.devices)?;
        let asked = self.asked.clone();
        let of = Some(OfNode { asked: asked.clone(), device, driver });
        Ok(Some(Arc::new(Self { asked, of })))
    }

    fn in_parts(&self) -> Option<&dyn InParts> {
        self.of.as_ref().map(|of| of as &dyn InParts)
    }

    async fn attempt(
        &self,
        _order: &ReleaseOrder,
        _permit: &ReleasePermit<'_>,
        _until: Instant,
    ) -> Result<Progress, ReleaseError> {
        Err(no_whole())
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        Err(no_whole().into_unknown())
    }
}

fn no_whole() -> ReleaseError {
    ReleaseError::DidNotHappen("volumes are let go one by one: a defect of the gateway".to_owned())
}

/// The volumes of one node.
#[derive(Debug)]
struct OfNode {
    asked: Asked,
    device: DeviceId,
    driver: Arc<dyn PowerDriver>,
}

impl OfNode {
    fn volumes(&self) -> Result<&dyn Volumes, ReleaseError> {
        self.driver.volumes().ok_or_else(|| {
            ReleaseError::DidNotHappen(format!("{} knows nothing of volumes any more", self.device))
        })
    }
}

#[async_trait]
impl InParts for OfNode {
    fn device(&self) -> &DeviceId {
        &self.device
    }

    fn choice(&self) -> String {
        let forced = if self.asked.forces { "; forced once half of the deadline has passed" } else { "" };
        format!("{}{forced}", self.asked.choice.words())
    }

    async fn survey(&self, call: &Call) -> Result<Found, ReleaseError> {
        let attached = self.volumes()?.attached(call).await.map_err(failed)?;
        let mut found = Found::default();
        let mut seen = BTreeSet::new();
        for volume in attached {
            // One that is attached twice is found again once it is let go at the one place.
            if !seen.insert(volume.at.id.clone()) {
                continue;
            }
            match self.asked.choice.stays(&volume) {
                Some(why) => found.stays.push((part(volume), why)),
                None => found.parts.push(part(volume)),
            }
        }
        Ok(found)
    }

    fn forces(&self) -> bool {
        self.asked.forces && self.volumes().is_ok_and(Volumes::forces)
    }

    fn turn(&self) -> Option<Duration> {
        self.volumes().ok()?.turn()
    }

    async fn attempt(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        part: &Part,
        late: bool,
        call: &Call,
    ) -> Result<Progress, ReleaseError> {
        let volumes = self.volumes()?;
        let whole = order.release().whole();
        let belongs = order.node() == permit.node()
            && order.generation() == permit.generation()
            && *order.release() == whole.part(&part.volume);
        if !belongs {
            let detail = format!(
                "the order is for {} of {} in generation {}, the permit for {} in {}, the volume is {part}: a defect of the gateway",
                order.release(),
                order.node(),
                order.generation(),
                permit.node(),
                permit.generation()
            );
            return Err(ReleaseError::DidNotHappen(detail));
        }
        if call.clock().wall() > permit.not_after() {
            return Err(ReleaseError::DidNotHappen("was not begun: the permit's time is over".to_owned()));
        }
        let forced = late && self.asked.forces;
        volumes.detach(order, permit, &at(part), forced, call).await.map_err(failed)?;
        Ok(Progress::Accepted(
            if forced { "the detach was taken, forced" } else { "the detach was taken" }.to_owned(),
        ))
    }

    async fn observe(&self, part: &Part, call: &Call) -> Result<Progress, ReleaseError> {
        let standing = self.volumes()?.standing(&at(part), call).await;
        // A look that failed says nothing of the volume.
        match standing.map_err(|error| failed(error).into_unknown())? {
            Standing::Free(words) => Ok(Progress::Complete(words)),
            Standing::Going(words) => Ok(Progress::Accepted(words)),
            Standing::Attached(words) => Ok(Progress::NotThere(words)),
        }
    }
}

fn at(part: &Part) -> VolumeAt {
    VolumeAt { id: part.volume.clone(), device: part.device.clone() }
}

fn part(volume: Volume) -> Part {
    Part { volume: volume.at.id, device: volume.at.device, name: volume.name }
}

/// S10: what an error of the driver means for the attempt.
fn failed(error: DriverError) -> ReleaseError {
    match error.effect {
        Effect::DidNotHappen => ReleaseError::DidNotHappen(error.to_string()),
        Effect::Unknown => ReleaseError::Unknown(format!(
            "{}: {}",
            error.kind.metric_label().replace('_', " "),
            error.detail
        )),
    }
}

#[cfg(test)]
mod tests;
