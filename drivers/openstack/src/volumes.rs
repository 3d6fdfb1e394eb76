//! A server's volumes: what Nova has attached, and whether Cinder says that one is free.
//!
//! # Invariants
//!
//! - A volume is free once neither Nova nor Cinder has it at the server. Shown by
//!   `a_volume_is_free_once_neither_has_it_at_the_server`.
//! - A detach is told to Nova (`os-volume_attachments`), which names server and volume. Cinder is asked, and
//!   never told: it refuses to detach behind Nova's back (CVE-2023-2088).
//! - No detach is sent to a host that is down, nor to one that we switched off and that Nova believes to be
//!   up still. Nova would hand the detach over when the host is back, and the volume may be another
//!   machine's by then (S8). Shown by
//!   `nothing_is_told_to_a_host_that_was_switched_off_whatever_nova_says_of_it`.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use picket_cloud::{Bound, Unclear};
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind, Standing, Volume, VolumeAt, Volumes};
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::cloud::{Command, QueryResult, Service};
use crate::driver::OpenstackDriver;
use crate::power_commands::refused;
use crate::server::{PowerStatus, Server};

#[derive(Deserialize)]
struct Attachments {
    #[serde(rename = "volumeAttachments")]
    list: Vec<Attachment>,
}

/// One of Nova's. From 2.89 on without `id`, which was the volume's.
#[derive(Clone, Debug, Deserialize)]
struct Attachment {
    #[serde(rename = "volumeId")]
    volume: String,
    #[serde(default)]
    device: Option<String>,
}

#[derive(Deserialize)]
struct VolumeAnswer {
    volume: CinderVolume,
}

/// One of Cinder's.
#[derive(Debug, Deserialize)]
struct CinderVolume {
    #[serde(default)]
    name: Option<String>,
    status: String,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    attachments: Vec<Owner>,
    /// The properties of the image that it was made of.
    #[serde(default)]
    volume_image_metadata: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Owner {
    #[serde(default)]
    server_id: Option<String>,
}

impl OpenstackDriver {
    async fn attachments(&self, call: &Call) -> Result<Vec<Attachment>, DriverError> {
        let path = format!("/servers/{}/os-volume_attachments", self.settings.server);
        match self.cloud.get::<Attachments>(Service::Compute, &path, call).await? {
            QueryResult::It(attachments) => Ok(attachments.list),
            QueryResult::NotThere(why) => Err(not_told(format!("its attachments are not told: {why}"))),
        }
    }

    async fn cinder(&self, volume: &str, call: &Call) -> Result<Option<CinderVolume>, DriverError> {
        match self.cloud.get::<VolumeAnswer>(Service::Volume, &format!("/volumes/{volume}"), call).await? {
            QueryResult::It(VolumeAnswer { volume }) => Ok(Some(volume)),
            QueryResult::NotThere(_) => Ok(None),
        }
    }

    /// The properties of the image of which the volume was made that a server was booted from; `None`: that is not told.
    pub(crate) async fn root_image(&self, server: &Server, call: &Call) -> Option<Value> {
        let attachments = self.attachments(call).await.ok()?;
        let root = Root::of(server, &attachments);
        let is_root = |one: &&Attachment| root.is(one.device.as_deref().unwrap_or_default());
        let volume = attachments.iter().find(is_root)?;
        self.cinder(&volume.volume, call).await.ok()??.volume_image_metadata
    }

    /// The server is proven off, and not by its host, which is dead: that may be told to Nova, which evacuates from no other.
    async fn let_evacuate(
        &self,
        server: &Server,
        bound: Bound,
        call: &Call,
    ) -> Result<&'static str, DriverError> {
        let Some(host) = &server.host else { return Ok("") };
        match self.compute_service(host, call).await? {
            Some(service) if service.forced_down => Ok("; its service is forced down"),
            // What was not found before the hold is not put back at unfence, and so not changed.
            Some(service) if self.services().may_be_forced(&service.id, host) => {
                self.force_down(&service.id, true, Some(bound), call).await?;
                self.services().forced = Some(service.id);
                Ok("; its service was forced down just now")
            }
            _ => Ok(""),
        }
    }

    async fn volume(&self, attachment: Attachment, root: Root, call: &Call) -> Result<Volume, DriverError> {
        // By its name and metadata it may be to stay: without them it is not known.
        let Some(known) = self.cinder(&attachment.volume, call).await? else {
            let volume = &attachment.volume;
            return Err(not_told(format!(
                "Nova has the volume {volume} attached, and Cinder does not know it"
            )));
        };
        let device = attachment.device.unwrap_or_default();
        let stays = root.is(&device).then(|| "it is the root volume".to_owned());
        let (name, tags) = (known.name.unwrap_or_default(), known.metadata);
        Ok(Volume { at: VolumeAt { id: attachment.volume, device }, name, tags, stays })
    }
}

/// Which device a server was booted from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Root {
    /// As Nova says.
    Device(String),
    /// From a volume, and which is not told: the first one by its device.
    First(String),
    /// From an image: no volume is its root.
    None,
}

impl Root {
    fn of(server: &Server, attachments: &[Attachment]) -> Self {
        match &server.root_device {
            _ if !server.is_by_volume() => Root::None,
            Some(device) => Root::Device(device.clone()),
            _ => {
                let devices = attachments.iter().filter_map(|one| one.device.clone());
                // sda before sdaa, and a before b: shorter names are earlier ones.
                devices.min_by_key(|device| (device.len(), device.clone())).map_or(Root::None, Root::First)
            }
        }
    }

    fn is(&self, device: &str) -> bool {
        match self {
            Root::Device(root) | Root::First(root) => root == device,
            Root::None => false,
        }
    }
}

fn not_told(detail: String) -> DriverError {
    DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, detail)
}

#[async_trait]
impl Volumes for OpenstackDriver {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(self.cloud.longest_life())
    }

    async fn attached(&self, call: &Call) -> Result<Vec<Volume>, DriverError> {
        // What is not there need not be what is looked for: a server of another project, or in another region, is not there either.
        let Some(server) = self.server_unless_ended(call).await? else { return Ok(Vec::new()) };
        let attachments = self.attachments(call).await?;
        let root = Root::of(&server, &attachments);
        try_join_all(attachments.into_iter().map(|one| self.volume(one, root.clone(), call))).await
    }

    async fn detach(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        volume: &VolumeAt,
        _forced: bool,
        call: &Call,
    ) -> Result<(), DriverError> {
        // Nova knows no forced detach: where the settings allow one, it is this one.
        let mut effort = Effort::once();
        let bound = Bound {
            life: order.life(),
            checked_at: Some(permit.checked_at()),
            not_after: Some(permit.not_after()),
        };
        call.may_send()?;
        let asked_at = call.now();
        let server = self.server_there(call).await?;
        if let Some(why) = no_hands(&server, permit.is_by_parent()) {
            // That the host is dead, and not only silent, the machine on which it runs alone proves.
            let forced = match permit.is_by_parent() {
                true => self.let_evacuate(&server, bound, &call.clone().under(permit.check())).await?,
                false => "",
            };
            let detail = format!(
                "{why}{forced}. Nova detaches there alone: it waits until the server is evacuated, or its host is back"
            );
            return Err(effort.error(ErrorKind::Refused, detail));
        }
        // Newer than the look of the permit: it was started meanwhile, or is about to be (S4).
        if may_run(&server, permit.needs_off()) {
            return Err(effort.error(ErrorKind::Refused, format!("it is {}", server.words())));
        }
        let check = permit.check();
        let call = &call.clone().under(match server.power() {
            PowerStatus::Off | PowerStatus::OffUnlessHostIsDown => check.seen_off_at(asked_at),
            PowerStatus::On | PowerStatus::Deleted | PowerStatus::Unknown => check,
        });
        self.unlock_for(&server, &effort, call).await?;
        let path = format!("/servers/{}/os-volume_attachments/{}", self.settings.server, volume.id);
        let (service, method, bound) = (Service::Compute, Method::DELETE, Some(bound));
        let command = Command { service, method, path: &path, body: None, bound, taken: None };
        let told = self.cloud.tell(command, &Unclear::default(), &mut effort, call).await?;
        match told.code.as_u16() {
            202 => {
                self.detaches.took(&volume.id, told.request);
                Ok(())
            }
            // It is not attached there: somebody else detached it.
            404 => Ok(()),
            _ => {
                let error = refused("detach", &told, &mut effort);
                // Nova refuses a second detach of a volume that goes already: the first one's answer may have been lost.
                let goes = async || {
                    matches!(self.standing(volume, call).await, Ok(Standing::Going(_) | Standing::Free(_)))
                };
                if error.effect == Effect::DidNotHappen && goes().await { Ok(()) } else { Err(error) }
            }
        }
    }

    async fn standing(&self, volume: &VolumeAt, call: &Call) -> Result<Standing, DriverError> {
        let ended = self.server_unless_ended(call).await?.is_none();
        let attachments = if ended { Vec::new() } else { self.attachments(call).await? };
        let cinder = self.cinder(&volume.id, call).await?;
        let by_nova = attachments.iter().any(|one| one.volume == volume.id);
        let standing = standing(by_nova, cinder.as_ref(), &self.settings.server);
        Ok(self.with_failed_detach(standing, &volume.id, call).await)
    }
}

/// Why there is nobody on its host who could detach; `None`: there is. Nova says `UP` of a host until it has missed its reports, and a server that
/// is off by its parent has no host that lives, whatever Nova says.
fn no_hands(server: &Server, is_by_parent: bool) -> Option<String> {
    let by_nova = server.host_takes_orders().err();
    by_nova.or_else(|| {
        let why = "its compute host was switched off, which Nova does not know yet: it would do what it is told when it is back";
        is_by_parent.then(|| why.to_owned())
    })
}

/// Whether the server runs, as Nova says; or, of one that `needs_off`, whether Nova does not say that it is off or deleted.
fn may_run(server: &Server, needs_off: bool) -> bool {
    match server.power() {
        PowerStatus::Off | PowerStatus::OffUnlessHostIsDown | PowerStatus::Deleted => false,
        PowerStatus::On => true,
        PowerStatus::Unknown => needs_off,
    }
}

/// What both say of a volume: it is free once neither has it at that server.
fn standing(by_nova: bool, cinder: Option<&CinderVolume>, server: &str) -> Standing {
    let Some(cinder) = cinder else {
        return match by_nova {
            true => Standing::Going("Cinder has no such volume, and Nova still has it attached".to_owned()),
            false => Standing::Free("neither Nova nor Cinder has such a volume".to_owned()),
        };
    };
    let of_it = |owner: &&Owner| owner.server_id.as_deref() == Some(server);
    let by_cinder = cinder.attachments.iter().any(|owner| of_it(&owner));
    let others = cinder.attachments.iter().filter(|owner| !of_it(owner)).count();
    let status = cinder.status.as_str();
    match (by_nova || by_cinder, status) {
        (false, "available") => Standing::Free("available".to_owned()),
        (false, "in-use") if others > 0 => Standing::Free(format!("in use by {others} other")),
        // Somebody else has it by now, or it is about to be: it is not this server's.
        (false, "attaching" | "reserved") => Standing::Free(format!("{status} elsewhere")),
        (false, _) => Standing::Going(format!("not attached here any more, and {status}")),
        (true, "detaching") => Standing::Going(status.to_owned()),
        // Cinder lets a volume go before Nova does. After a second detach nobody would see the end of the first one.
        (true, "available" | "in-use") if !by_cinder => Standing::Going(format!(
            "Cinder is without this server, and {status}; Nova still has it attached"
        )),
        (true, _) => Standing::Attached(status.to_owned()),
    }
}

#[cfg(test)]
mod tests;
