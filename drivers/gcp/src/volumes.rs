//! An instance's volumes: what Compute Engine has attached, and whether the disk says that it is free.
//!
//! **Invariant.** A detach names the instance by its numeric id and the device, and goes only where that device has that disk, so that it
//! takes none from anybody else. **Invariant.** A disk is free once neither the instance has it nor the disk has the instance among its
//! users; whoever else has it keeps it.

use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_driver::{Call, DriverError, Effect, ErrorKind, Standing, Volume, VolumeAt, Volumes};

use crate::cloud::{Bound, Command};
use crate::driver::GcpDriver;
use crate::instance::{AttachedDisk, Disk, Instance};
use crate::requests::{Of, RequestId};

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
        let stays = disk.boot.then(|| "it is the boot disk".to_owned());
        // By its name and labels it may be to stay: without them it is not known.
        let Some(Disk { name, labels, .. }) = self.cloud.disk(&id, call).await? else {
            return Err(not_told(format!(
                "the instance has the disk {id}, and Compute Engine does not know that"
            )));
        };
        Ok(Volume { at: VolumeAt { id, device }, name, tags: labels, stays })
    }

    /// Where the disk is at the instance: at the device that was stored, at another one, or nowhere.
    fn device_of<'a>(instance: &'a Instance, volume: &VolumeAt) -> Option<&'a AttachedDisk> {
        let mut of_it = instance.disks.iter().filter(|disk| disk.path() == Some(&volume.id));
        of_it.clone().find(|disk| disk.device_name == volume.device).or_else(|| of_it.next())
    }
}

#[async_trait]
impl Volumes for GcpDriver {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(self.cloud.longest_life())
    }

    async fn attached(&self, call: &Call) -> Result<Vec<Volume>, DriverError> {
        let Instance { disks, .. } = self.instance(call).await?;
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
        let instance = self.instance(call).await?;
        let at = match Self::device_of(&instance, volume) {
            Some(disk) if disk.boot => {
                let detail = "it is the boot disk by now, which stays".to_owned();
                return Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, detail));
            }
            Some(disk) => disk.device_name.clone(),
            // Somebody else detached it, or we did before.
            None => return Ok(()),
        };
        let of = Of {
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
        let path = self.path("/detachDisk");
        let command = Command {
            method: "instances.detachDisk",
            path: &path,
            query: vec![("deviceName", &at)],
            request: RequestId::new(of),
            bound: Some(bound),
        };
        let told = self.cloud.tell(command, self.region(), &Default::default(), call).await?;
        let Err(failure) = told else { return Ok(()) };
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
        let (instance, disk) = tokio::try_join!(self.instance(call), self.cloud.disk(&volume.id, call))?;
        let standing = standing(&instance, disk.as_ref(), volume, &self.settings.zone);
        if let Standing::Attached(words) = &standing {
            let under_way = self.cloud.unfinished(&self.settings.zone, &self.settings.id, call).await?;
            if let Some(detach) = under_way.iter().find(|operation| operation.operation_type == "detachDisk")
            {
                return Ok(Standing::Going(format!("{words}; under way: {}", detach.words())));
            }
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
fn standing(instance: &Instance, disk: Option<&Disk>, volume: &VolumeAt, zone: &str) -> Standing {
    let mapped = GcpDriver::device_of(instance, volume).is_some();
    let Some(disk) = disk else {
        return match mapped {
            true => Standing::Going("there is no such disk, and the instance still has it".to_owned()),
            false => Standing::Free("there is no such disk".to_owned()),
        };
    };
    let ours = disk.users.iter().filter(|link| is_of(link, instance, zone)).count();
    let others = disk.users.len() - ours;
    let status = disk.status.as_deref().unwrap_or("no status is told");
    match (mapped, ours > 0) {
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
            let instance =
                Instance { id: "17".to_owned(), name: "db-1".to_owned(), disks, ..Instance::default() };
            let disk = users
                .clone()
                .map(|users| Disk { users: users.into_iter().cloned().collect(), ..Disk::default() });
            let told = standing(&instance, disk.as_ref(), &at, ZONE);
            let word = match told {
                Standing::Attached(_) => "attached",
                Standing::Going(_) => "going",
                Standing::Free(_) => "free",
            };
            assert_eq!(word, wanted, "{mapped} {users:?}: {told:?}");
        }
        // Of an instance whose name is not told any user may be it.
        let nameless = Instance { id: "17".to_owned(), ..Instance::default() };
        let disk = Disk { users: vec![other], ..Disk::default() };
        assert!(matches!(standing(&nameless, Some(&disk), &at, ZONE), Standing::Going(_)));
    }

    #[test]
    fn a_disk_is_known_by_its_link_and_not_by_the_device_that_it_had() {
        let of = |device: &str, name: &str| AttachedDisk {
            device_name: device.to_owned(),
            source: Some(format!("https://x/projects/p/zones/{ZONE}/disks/{name}")),
            ..AttachedDisk::default()
        };
        let instance =
            Instance { disks: vec![of("data", "other"), of("moved", "data-1")], ..Instance::default() };
        let at = VolumeAt { id: DISK.to_owned(), device: "data".to_owned() };
        assert_eq!(GcpDriver::device_of(&instance, &at).map(|disk| disk.device_name.as_str()), Some("moved"));
        let gone = VolumeAt { id: format!("{DISK}0"), device: "data".to_owned() };
        assert_eq!(GcpDriver::device_of(&instance, &gone), None);
    }
}
