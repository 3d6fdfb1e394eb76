//! An instance's volumes: what Compute Engine has attached, and whether the disk says that it is free.
//!
//! # Invariants
//!
//! - A detach names the instance by its numeric id and the device, and goes only where that device has that
//!   disk. Shown by `a_disk_is_known_by_its_link_and_not_by_the_device_that_it_had`.
//! - A disk is free once neither the instance has it nor the disk has the instance among its users. Other
//!   users keep it. Shown by `a_disk_is_free_once_neither_has_it_at_the_instance`.

use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use picket_cloud::Bound;
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_driver::{Call, DriverError, Effect, ErrorKind, Standing, Volume, VolumeAt, Volumes};

use crate::cloud::Command;
use crate::driver::GcpDriver;
use crate::instance::{AttachedDisk, Disk, Instance, PowerStatus};
use crate::operation::Operation;
use crate::requests::{RequestId, RequestIdParts};

fn not_told(detail: String) -> DriverError {
    DriverError::new(ErrorKind::Protocol, Effect::DidNotHappen, detail)
}

/// What a local SSD is called, which is no disk of its own.
fn local(disk: &AttachedDisk) -> String {
    format!("local SSD {}", disk.device_name)
}

impl GcpDriver {
    async fn volume(&self, disk: AttachedDisk, call: &Call) -> Result<Volume, DriverError> {
        if disk.is_local() {
            let stays = Some("it is a local SSD, which is part of the machine".to_owned());
            let at = VolumeAt { id: local(&disk), device: disk.device_name };
            return Ok(Volume { at, name: String::new(), tags: Default::default(), stays });
        }
        let device = disk.device_name.clone();
        let id = disk.path().filter(|_| !device.is_empty()).map(str::to_owned);
        let Some(id) = id else {
            return Err(not_told(format!(
                "the instance has a disk at {device:?} that does not say which it is"
            )));
        };
        // It stays whatever it is called: what cannot be told of it keeps nothing back.
        if disk.is_boot() {
            let name = id.rsplit('/').next().unwrap_or_default().to_owned();
            let stays = Some("it is the boot disk".to_owned());
            return Ok(Volume { at: VolumeAt { id, device }, name, tags: Default::default(), stays });
        }
        // By its name and labels it may be to stay: without them it is not known.
        let Some(Disk { name, labels, .. }) = self.cloud.disk(&id, call).await? else {
            return Err(not_told(format!(
                "the instance has the disk {id}, and Compute Engine does not know that"
            )));
        };
        Ok(Volume { at: VolumeAt { id, device }, name, tags: labels, stays: None })
    }

    /// The instance; within: that Compute Engine says, of its very number, that there is none.
    async fn found(&self, call: &Call) -> Result<Result<Instance, String>, DriverError> {
        match self.look(call).await?.found {
            Ok(instance) => {
                self.is_called_so(&instance)?;
                Ok(Ok(instance))
            }
            Err(why) if why.contains(&format!("/instances/{}'", self.settings.id)) => Ok(Err(why)),
            Err(why) => Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, why)),
        }
    }

    /// The same of a disk where the instance is not there any more: its users tell, each by who has its name now.
    async fn standing_without(&self, disk: Option<&Disk>, call: &Call) -> Result<Standing, DriverError> {
        let Some(disk) = disk else { return Ok(Standing::Free("there is no such disk".to_owned())) };
        let zone = &self.settings.zone;
        let here = |link: &String| Some(link.split_once(&format!("/zones/{zone}/instances/"))?.1.to_owned());
        for name in disk.users().iter().filter_map(here) {
            match self.cloud.named(zone, &name, call).await? {
                Ok(other) if other.id != self.settings.id => {}
                Ok(_) => {
                    return Ok(Standing::Going(format!("in use by {name}, which was not there just now")));
                }
                Err(failure) if failure.is_not_found() => {
                    return Ok(Standing::Going(format!("in use by {name}, which is not there")));
                }
                Err(failure) => return Err(failure.of_question()),
            }
        }
        let status = disk.status.as_deref().unwrap_or("no status is told");
        Ok(Standing::Free(match disk.users().len() {
            0 => format!("the instance is gone, and nobody uses it, {status}"),
            others => format!("the instance is gone; in use by {others} other"),
        }))
    }

    /// That operation detaches it, or did not.
    fn keep(&self, volume: &VolumeAt, operation: Operation) {
        let mut detaches = self.detaches.lock();
        detaches.insert(volume.id.clone(), operation.name);
    }

    /// Why the last detach of ours came to nothing, in words; `None`: it did not, or nobody says so.
    async fn detach_failed(&self, volume: &VolumeAt, call: &Call) -> Option<String> {
        let name = self.detaches.lock().get(&volume.id).cloned()?;
        let operation = self.cloud.operation(&self.settings.zone, &name, call).await.ok()?.ok()?;
        operation.failed().map(|why| format!("our detach {name} came to nothing: {why}"))
    }

    /// Where the disk is at the instance: at the device that was stored, at another one, or nowhere.
    fn device_of<'a>(disks: &'a [AttachedDisk], volume: &VolumeAt) -> Option<&'a AttachedDisk> {
        let mut of_it = disks.iter().filter(|disk| disk.path() == Some(&volume.id));
        of_it.clone().find(|disk| disk.device_name == volume.device).or_else(|| of_it.next())
    }
}

#[async_trait]
impl Volumes for GcpDriver {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(self.cloud.longest_life())
    }

    async fn attached(&self, call: &Call) -> Result<Vec<Volume>, DriverError> {
        let instance = match self.found(call).await? {
            Ok(instance) => instance,
            // Who is not there any more has nothing.
            Err(_gone) if self.was_there() => return Ok(Vec::new()),
            // Who never was there need not be who is looked for: another zone or project has the same answer.
            Err(why) => return Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, why)),
        };
        let disks = instance.disks().map_err(not_told)?.to_vec();
        try_join_all(disks.into_iter().map(|disk| self.volume(disk, call))).await
    }

    async fn detach(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        volume: &VolumeAt,
        _forced: bool,
        call: &Call,
    ) -> Result<(), DriverError> {
        // Compute Engine knows no forced detach: where the settings allow one, it is this one.
        call.may_send()?;
        let asked_at = call.now();
        let Ok(instance) = self.found(call).await? else { return Ok(()) };
        // Newer than the look of the permit: it was started meanwhile, or is about to be (S4).
        let stays = match instance.said() {
            PowerStatus::Terminated => false,
            PowerStatus::On => true,
            PowerStatus::Unknown => permit.needs_off(),
        };
        if stays {
            return Err(DriverError::new(
                ErrorKind::Refused,
                Effect::DidNotHappen,
                format!("it is {}", instance.words()),
            ));
        }
        let check = permit.check();
        let call = &call.clone().under(match instance.said() {
            PowerStatus::Terminated => check.seen_off_at(asked_at),
            PowerStatus::On | PowerStatus::Unknown => check,
        });
        let disks = instance.disks().map_err(not_told)?;
        let at = match Self::device_of(disks, volume) {
            Some(disk) if disk.is_boot() => {
                let detail = "it is the boot disk by now, which stays".to_owned();
                return Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, detail));
            }
            Some(disk) => disk.device_name.clone(),
            // Somebody else detached it, or we did before.
            None => return Ok(()),
        };
        let of = RequestIdParts {
            salt: self.salt,
            method: "instances.detachDisk",
            node: order.node(),
            generation: order.generation(),
            effect: order.effect(),
            instance: &self.settings.id,
            device: &at,
            nth: 0,
        };
        let bound = Bound {
            life: order.life(),
            checked_at: Some(permit.checked_at()),
            not_after: Some(permit.not_after()),
        };
        let request = RequestId::new(of);
        let path = self.path("/detachDisk");
        let command = Command {
            method: "instances.detachDisk",
            path: &path,
            query: vec![("deviceName", &at)],
            request,
            bound: Some(bound),
        };
        let told = self.cloud.tell(command, self.region(), &Default::default(), call).await?;
        let failure = match told {
            Ok(told) => {
                self.keep(volume, told.operation);
                return Ok(());
            }
            Err(failure) => failure,
        };
        // One copy was sent: where its operation is there, that was taken, and is over once that is.
        let is_taken = async || self.cloud.of_request(&self.settings.zone, request, call).await;
        if failure.unclear
            && let Ok(Some(operation)) = is_taken().await
        {
            self.keep(volume, operation);
            return Ok(());
        }
        if failure.is_busy() {
            return Err(DriverError { kind: ErrorKind::Throttled, ..failure.into_error() });
        }
        let is_refused = !failure.unclear && failure.kind == ErrorKind::Refused;
        if is_refused
            && matches!(self.standing(volume, call).await, Ok(Standing::Free(_) | Standing::Going(_)))
        {
            return Ok(());
        }
        Err(failure.into_error())
    }

    async fn standing(&self, volume: &VolumeAt, call: &Call) -> Result<Standing, DriverError> {
        let (found, disk) = tokio::try_join!(self.found(call), self.cloud.disk(&volume.id, call))?;
        let instance = match found {
            Ok(instance) => instance,
            Err(_gone) => return self.standing_without(disk.as_ref(), call).await,
        };
        let mapped = Self::device_of(instance.disks().map_err(not_told)?, volume).is_some();
        let standing = standing(mapped, &instance, disk.as_ref(), &self.settings.zone);
        if let Standing::Attached(words) = &standing {
            let under_way = self.cloud.unfinished(&self.settings.zone, &self.settings.id, call).await?;
            if let Some(detach) = under_way.iter().find(|operation| operation.operation_type == "detachDisk")
            {
                return Ok(Standing::Going(format!("{words}; under way: {}", detach.words())));
            }
            let ended = self.detach_failed(volume, call).await.map(|how| format!("{words}; {how}"));
            return Ok(ended.map_or(standing, Standing::Attached));
        }
        Ok(standing)
    }
}

/// Whether that link is the instance's. Links have names, and a project's number where its name would be; while the instance is there
/// nobody else in its zone has its name.
fn is_of(link: &str, instance: &Instance, zone: &str) -> bool {
    let ends = |last: &str| link.ends_with(&format!("/zones/{zone}/instances/{last}"));
    instance.name.is_empty() || ends(&instance.name) || ends(&instance.id)
}

/// What both say of a disk: it is free once neither has it at that instance.
fn standing(mapped: bool, instance: &Instance, disk: Option<&Disk>, zone: &str) -> Standing {
    let Some(disk) = disk else {
        return match mapped {
            true => Standing::Going("there is no such disk, and the instance still has it".to_owned()),
            false => Standing::Free("there is no such disk".to_owned()),
        };
    };
    let history = disk.users().iter().filter(|link| is_of(link, instance, zone)).count();
    let others = disk.users().len() - history;
    let status = disk.status.as_deref().unwrap_or("no status is told");
    match (mapped, history > 0) {
        (true, true) => Standing::Attached(format!("attached, {status}")),
        (true, false) => {
            Standing::Going("the disk is without this instance, and the instance still has it".to_owned())
        }
        (false, true) => {
            Standing::Going("the instance is without the disk, and still among its users".to_owned())
        }
        (false, false) if others > 0 => Standing::Free(format!("in use by {others} other")),
        (false, false) => Standing::Free(format!("nobody uses it, {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONE: &str = "europe-west1-b";
    const DISK: &str = "projects/p/zones/europe-west1-b/disks/data-1";

    fn link(zone: &str, name: &str) -> String {
        format!("https://www.googleapis.com/compute/v1/projects/p/zones/{zone}/instances/{name}")
    }

    #[test]
    fn a_disk_is_free_once_neither_has_it_at_the_instance() {
        let at = VolumeAt { id: DISK.to_owned(), device: "data".to_owned() };
        let us = link(ZONE, "db-1");
        let by_number = us.replace("projects/p/", "projects/123/");
        let (other, elsewhere) = (link(ZONE, "db-10"), link("europe-west1-c", "db-1"));
        for (mapped, users, wanted) in [
            (true, Some(vec![&us]), "attached"),
            (true, Some(vec![&us, &other]), "attached"),
            (true, Some(vec![&by_number]), "attached"),
            (true, Some(vec![]), "going"),
            (false, Some(vec![&us]), "going"),
            (false, Some(vec![&other, &us]), "going"),
            (false, Some(vec![&by_number]), "going"),
            (false, Some(vec![&other]), "free"),
            (false, Some(vec![&elsewhere]), "free"),
            (false, Some(vec![]), "free"),
            (true, None, "going"),
            (false, None, "free"),
        ] {
            let source = Some(format!("https://compute.googleapis.com/compute/v1/{DISK}"));
            let data = AttachedDisk { device_name: "data".to_owned(), source, ..AttachedDisk::default() };
            let disks = if mapped { vec![data] } else { Vec::new() };
            let instance = Instance { id: "17".to_owned(), name: "db-1".to_owned(), ..Instance::default() };
            let disk = users
                .clone()
                .map(|users| Disk { users: Some(users.into_iter().cloned().collect()), ..Disk::default() });
            let mapped = GcpDriver::device_of(&disks, &at).is_some();
            let told = standing(mapped, &instance, disk.as_ref(), ZONE);
            let word = match told {
                Standing::Attached(_) => "attached",
                Standing::Going(_) => "going",
                Standing::Free(_) => "free",
            };
            assert_eq!(word, wanted, "{mapped} {users:?}: {told:?}");
        }
        // Of an instance whose name is not told any user may be it.
        let nameless = Instance { id: "17".to_owned(), ..Instance::default() };
        let disk = Disk { users: Some(vec![other]), ..Disk::default() };
        assert!(matches!(standing(false, &nameless, Some(&disk), ZONE), Standing::Going(_)));
    }

    #[test]
    fn a_disk_is_known_by_its_link_and_not_by_the_device_that_it_had() {
        let of = |device: &str, name: &str| AttachedDisk {
            device_name: device.to_owned(),
            source: Some(format!("https://x/projects/p/zones/{ZONE}/disks/{name}")),
            ..AttachedDisk::default()
        };
        let disks = [of("data", "other"), of("moved", "data-1")];
        let at = VolumeAt { id: DISK.to_owned(), device: "data".to_owned() };
        assert_eq!(GcpDriver::device_of(&disks, &at).map(|disk| disk.device_name.as_str()), Some("moved"));
        let gone = VolumeAt { id: format!("{DISK}0"), device: "data".to_owned() };
        assert_eq!(GcpDriver::device_of(&disks, &gone), None);
    }
}
