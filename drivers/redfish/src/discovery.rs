//! How the system is found at a service: one question after another, and a call that ends among them leaves
//! fewer to the next one.
//!
//! # Invariants
//!
//! - What is learned are places, and what a service offers there. It goes with the session in which it was
//!   learned. Shown by `what_was_learned_goes_with_its_session`.
//! - Whose machine the system is, is no part of it: the system itself is asked each time (S13). Shown by
//!   `whose_machine_it_is_is_asked_each_time`.

use std::collections::BTreeMap;

use picket_driver::{Call, DriverError, Effort, ErrorKind};
use serde_json::Value;

use crate::answer::{path_of, tame};
use crate::exchange::unread;
use crate::line::Line;
use crate::machine_identity::slot;
use crate::service::{DiscoveredService, Object, Service, members};
use crate::service_request::ServiceRequest;
use crate::session::Session;

/// What an empty list of systems means: it does not wait for a person.
const NO_SYSTEM: &str = "the service names no computer system; it may be starting";

/// How many ids are named in an error.
const NAMED: usize = 8;

/// What the service root says.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceRoot {
    /// The collection of its systems.
    pub(crate) systems: Option<String>,
    /// What says how long a session lives.
    pub(crate) session_service: Option<String>,
}

/// What was found so far, for the session that is there.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    pub(crate) root: Option<ServiceRoot>,
    /// The system's path.
    system: Option<String>,
    /// The path of an ActionInfo, and what the reset takes by that.
    allowed: Option<(String, Vec<String>)>,
    /// Places that the service redirects, and where to: the same with or without the last slash.
    pub(crate) moved: BTreeMap<String, String>,
    /// The service's `SessionTimeout` is no longer than that of the settings.
    pub(crate) timeout_fits: bool,
}

impl Line {
    /// The session is used no more, and what was learned for it neither.
    pub(crate) fn leave_session(&mut self) -> Option<Session> {
        self.learned = Learned::default();
        self.session.take()
    }

    /// The system is not where it was, or nobody knows which it is: it is looked for from the root on.
    pub(crate) fn lose_system(&mut self) {
        (self.service, self.learned) = (None, Learned::default());
    }
}

impl Service {
    /// Looks at the system anew, and at what is not known yet of the way to it.
    ///
    /// # Errors
    /// Something is missing without which nothing is safe; it says what. Nothing was sent that changes power.
    pub(crate) async fn discover(line: &mut Line, call: &Call) -> Result<DiscoveredService, DriverError> {
        let mut root = match line.learned.root.clone() {
            Some(root) => root,
            None => Self::root(line, call).await?,
        };
        if root.systems.is_none() {
            root = Self::root_of_ours(line, call).await?;
        }
        let Some(systems) = root.systems else {
            let why = "the service has no computer systems (Systems)";
            return Err(line.error(&Effort::reading(), ErrorKind::Unsupported, why));
        };
        // A session is there by now, if there are any.
        let (system, object) = Self::look_up(line, call, &systems).await?;
        // What is asked after this may be answered elsewhere.
        let (slot, certificate) = (slot(line, &object), line.certificate.clone());
        line.learned.system = Some(system.clone());
        let action = object.get("Actions").and_then(|actions| actions.get("#ComputerSystem.Reset"));
        let action = action.and_then(Value::as_object).cloned().unwrap_or_default();
        let Some(reset) = action.get("target").and_then(Value::as_str).and_then(path_of) else {
            let why =
                "the system has no action #ComputerSystem.Reset with a target: it cannot be switched off";
            return Err(line.error(&Effort::reading(), ErrorKind::Unsupported, why));
        };
        // At a service of several systems a fixed place may be another one's (S13). DSP0266 has actions under their resource.
        let is_its_own = |path: &str| {
            path.strip_prefix(system.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
        };
        if line.settings.system.is_some() && !is_its_own(&reset) {
            let why = format!(
                "the system's reset is at {}, which is not under the system's own path {}: it may switch another one",
                tame(&reset),
                tame(&system)
            );
            return Err(line.error(&Effort::reading(), ErrorKind::Unsupported, why));
        }
        let allowed = Self::allowed(line, call, &action).await?;
        if !allowed.iter().any(|one| one == "ForceOff") {
            let why = format!(
                "the system's reset does not offer ForceOff, and nothing else is a hard off; it offers {}",
                if allowed.is_empty() {
                    "nothing that it names".to_owned()
                } else {
                    tame(&allowed.join(", "))
                }
            );
            return Err(line.error(&Effort::reading(), ErrorKind::Unsupported, why));
        }
        let on = ["On", "ForceOn"].into_iter().find(|verb| allowed.iter().any(|one| one == verb));
        let managed_by =
            object.get("Links").and_then(|links| links.get("ManagedBy")).and_then(Value::as_array);
        let managers =
            managed_by.into_iter().flatten().filter_map(|one| path_of(one.get("@odata.id")?.as_str()?));
        let service = Self { system, reset, on, managers: managers.collect() };
        // Last, as a fence goes on without it. A check that it does not suit finds no service.
        Self::compare_timeout(line, call, root.session_service).await?;
        line.service = Some(service.clone());
        Ok(DiscoveredService { service, system: object, slot, certificate })
    }

    /// The system as it is now: where it was found before in this session, else by its id, or as the only one.
    async fn look_up(line: &mut Line, call: &Call, systems: &str) -> Result<(String, Object), DriverError> {
        if let Some(path) = line.learned.system.clone() {
            let answer = line.ask(&ServiceRequest::get(&path), call, &mut Effort::reading()).await?;
            match (answer.status, answer.fresh()) {
                (404 | 410, _) => line.lose_system(),
                (_, Some(object)) => return Ok((path, object)),
                (_, None) => return Err(unread(line, &answer, "the system")),
            }
        }
        let path = match line.settings.system.clone() {
            Some(id) => {
                let path = format!("{}/{id}", systems.trim_end_matches('/'));
                let answer = line.ask(&ServiceRequest::get(&path), call, &mut Effort::reading()).await?;
                if let Some(object) = answer.fresh() {
                    return Ok((path, object));
                }
                if !matches!(answer.status, 400 | 404) {
                    return Err(unread(line, &answer, "the system"));
                }
                Self::named(line, call, systems, &id).await?
            }
            None => Self::only(line, call, systems).await?,
        };
        line.learned.system = Some(path.clone());
        let (_, object) = Self::read(line, call, ServiceRequest::get(&path), "the system").await?;
        Ok((path, object))
    }

    /// The system of that id. Some name their systems otherwise than they place them: the collection knows.
    async fn named(line: &mut Line, call: &Call, systems: &str, id: &str) -> Result<String, DriverError> {
        let members = Self::systems(line, call, systems).await?;
        let last = |path: &String| path.trim_end_matches('/').rsplit('/').next() == Some(id);
        match members.iter().find(|path| last(path)) {
            Some(path) => Ok(path.clone()),
            None if members.is_empty() => Err(line.error(&Effort::reading(), ErrorKind::Protocol, NO_SYSTEM)),
            None => {
                let why = format!("there is no system {id:?}; there are {}", names(&members));
                Err(line.error(&Effort::reading(), ErrorKind::Settings, why))
            }
        }
    }

    /// The only system.
    async fn only(line: &mut Line, call: &Call, systems: &str) -> Result<String, DriverError> {
        let members = Self::systems(line, call, systems).await?;
        match &members[..] {
            [only] => Ok(only.clone()),
            [] => Err(line.error(&Effort::reading(), ErrorKind::Protocol, NO_SYSTEM)),
            several => {
                let why = format!(
                    "the service has several systems: set system to the id of one of {}",
                    names(several)
                );
                Err(line.error(&Effort::reading(), ErrorKind::Settings, why))
            }
        }
    }

    async fn systems(line: &mut Line, call: &Call, systems: &str) -> Result<Vec<String>, DriverError> {
        let (_, list) = Self::read(line, call, ServiceRequest::get(systems), "the list of systems").await?;
        members(&list).ok_or_else(|| {
            // The only one that can be read need not be the only one.
            let why = "the list of systems is not whole, or has one without a link that can be followed: set system to the \
                       id of one, which is then asked for itself";
            line.error(&Effort::reading(), ErrorKind::Protocol, why)
        })
    }

    /// What the reset takes: said with the action, or where it points to (DSP0266, "Allowable values" and "Action info").
    async fn allowed(line: &mut Line, call: &Call, action: &Object) -> Result<Vec<String>, DriverError> {
        let texts = |value: Option<&Value>| -> Option<Vec<String>> {
            let list = value?.as_array()?;
            Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        };
        if let Some(allowed) = texts(action.get("ResetType@Redfish.AllowableValues")) {
            return Ok(allowed);
        }
        let Some(info) = action.get("@Redfish.ActionInfo").and_then(Value::as_str).and_then(path_of) else {
            return Ok(Vec::new());
        };
        if let Some((_, allowed)) = line.learned.allowed.as_ref().filter(|(path, _)| *path == info) {
            return Ok(allowed.clone());
        }
        let ask = ServiceRequest::get(&info);
        let (_, said) = Self::read(line, call, ask, "what the reset takes (ActionInfo)").await?;
        let parameters = said.get("Parameters").and_then(Value::as_array);
        let reset_type = parameters
            .into_iter()
            .flatten()
            .find(|one| one.get("Name").and_then(Value::as_str) == Some("ResetType"));
        let allowed = reset_type.and_then(|one| texts(one.get("AllowableValues"))).unwrap_or_default();
        line.learned.allowed = Some((info, allowed.clone()));
        Ok(allowed)
    }
}

fn names(members: &[String]) -> String {
    let ids = members.iter().filter_map(|path| path.trim_end_matches('/').rsplit('/').next());
    let mut shown: Vec<String> = ids.take(NAMED).map(|id| format!("{:?}", tame(id))).collect();
    if members.len() > NAMED {
        shown.push(format!("{} more", members.len() - NAMED));
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}
