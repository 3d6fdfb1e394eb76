//! What is found at a service: the system, its reset action and what that takes, its managers, where
//! sessions are made. `discovery` finds the way to the system.
//!
//! # Invariants
//!
//! - What the service does not say it can, it is not asked to do: without `ForceOff` among the allowed
//!   values there is no driver for it. Shown by `without_force_off_there_is_no_driver_for_it`.

use std::pin::Pin;
use std::time::Duration;

use picket_driver::{Call, DriverError, Effort, ErrorKind};
use serde_json::{Map, Value};

use crate::answer::{Answer, path_of};
use crate::discovery::ServiceRoot;
use crate::exchange::unread;
use crate::line::{Line, NO_SESSIONS};
use crate::machine_identity::Slot;
use crate::service_request::ServiceRequest;
use crate::settings::Authentication;

/// Where everything begins (DSP0266, "Protocol version" and "Service root request").
pub(crate) const ROOT: &str = "/redfish/v1/";
/// Where sessions are made at a service that shows no stranger where: by DSP0266 and its URIs, and as in iDRAC 7 and 8.
pub(crate) const UNLISTED: [&str; 2] = ["/redfish/v1/SessionService/Sessions", "/redfish/v1/Sessions"];
/// No service keeps an idle session for longer than a day (`SessionTimeout`, DSP2046: 86400 s at most). One that says so much, and be it by the
/// largest number there is, ends none by itself.
pub const NEVER: Duration = Duration::from_secs(365 * 86_400);

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The computer system.
    pub system: String,
    /// Where `ComputerSystem.Reset` is posted.
    pub reset: String,
    /// The verb that switches on, if there is an absolute one.
    pub on: Option<&'static str>,
    /// Who manages the system.
    pub managers: Vec<String>,
}

/// What a look at everything came to.
#[derive(Debug)]
pub(crate) struct DiscoveredService {
    pub(crate) service: Service,
    /// The system, as it describes itself.
    pub(crate) system: Object,
    /// Whose it is, by that.
    pub(crate) slot: Result<Slot, DriverError>,
    /// The certificate of the service that described it.
    pub(crate) certificate: Option<String>,
}

/// What a request may itself have to ask for first.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, DriverError>> + Send + 'a>>;

/// A resource.
pub type Object = Map<String, Value>;

pub fn link(object: &Object, key: &str) -> Option<String> {
    object.get(key)?.get("@odata.id")?.as_str().and_then(path_of)
}

/// Where sessions are made, and what else the service root says.
fn links_of(root: &Object) -> (Option<String>, ServiceRoot) {
    let direct = root.get("Links").and_then(Value::as_object).and_then(|links| link(links, "Sessions"));
    let session_service = link(root, "SessionService");
    let below = || Some(format!("{}/Sessions", session_service.as_ref()?.trim_end_matches('/')));
    (direct.or_else(below), ServiceRoot { systems: link(root, "Systems"), session_service })
}

impl Service {
    /// Reads `path`, which must be an object.
    pub async fn read(
        line: &mut Line,
        call: &Call,
        ask: ServiceRequest,
        what: &str,
    ) -> Result<(Answer, Object), DriverError> {
        let effort = &mut Effort::reading();
        let answer = line.ask(&ask, call, effort).await?;
        match answer.fresh() {
            Some(object) => Ok((answer, object)),
            None => Err(unread(line, &answer, what)),
        }
    }

    /// Where sessions are made; `None`: nowhere, and the settings allow to go without.
    pub fn sessions<'a>(line: &'a mut Line, call: &'a Call) -> Later<'a, Option<String>> {
        // Boxed: reading it is itself a request, of the kind that needs no session.
        Box::pin(async move {
            if line.sessions.is_none() {
                Self::root(line, call).await?;
            }
            match line.sessions.clone() {
                Some(path) => Ok(Some(path)),
                None if line.settings.authentication == Authentication::SessionOrBasic => Ok(None),
                None => {
                    let why = format!("the service has no sessions: {NO_SESSIONS}");
                    Err(line.error(&Effort::reading(), ErrorKind::Unsupported, why))
                }
            }
        })
    }

    /// The service root, which anybody may read; where sessions are made stands there. Some services want credentials for it, or show
    /// a stranger nothing: their sessions are made where services mostly make them, and the rest is read in one.
    pub(crate) async fn root(line: &mut Line, call: &Call) -> Result<ServiceRoot, DriverError> {
        let answer = line.ask(&ServiceRequest::open(ROOT), call, &mut Effort::reading()).await?;
        let said = match answer.fresh() {
            Some(said) => said,
            None if matches!(answer.status, 401 | 403) && line.is_by_session() => Object::new(),
            None => return Err(unread(line, &answer, "the service root")),
        };
        let (listed, root) = links_of(&said);
        let is_bare = listed.is_none() && root.systems.is_none() && line.is_by_session();
        if !is_bare {
            (line.sessions, line.unlisted) = (listed, false);
        } else if line.sessions.is_none() {
            (line.sessions, line.unlisted) = (Some(UNLISTED[0].to_owned()), true);
        }
        line.learned.root = Some(root.clone());
        Ok(root)
    }

    /// The same with credentials, where a stranger does not see where the systems are.
    pub(crate) async fn root_of_ours(line: &mut Line, call: &Call) -> Result<ServiceRoot, DriverError> {
        let (_, said) = Self::read(line, call, ServiceRequest::get(ROOT), "the service root").await?;
        let (listed, root) = links_of(&said);
        // A place that worked and is not listed stays.
        if listed.is_some() {
            (line.sessions, line.unlisted) = (listed, false);
        }
        line.learned.root = Some(root.clone());
        Ok(root)
    }

    /// Compares what the settings say of a session's life with what the service says, which may have been told otherwise since: once
    /// a session, where it fits. A check refuses what is longer; a fence goes on, and what was sent is waited out for the longer one.
    pub(crate) async fn compare_timeout(
        line: &mut Line,
        call: &Call,
        session_service: Option<String>,
    ) -> Result<(), DriverError> {
        let is_due = line.session.is_some() && !line.learned.timeout_fits;
        let Some(path) = session_service.filter(|_| is_due) else { return Ok(()) };
        let read = Self::read(line, call, ServiceRequest::get(path), "the session service").await;
        let service = match read {
            Ok((_, service)) => service,
            // Whether an off is sent does not hang on it.
            Err(error) if !call.may_only_read() => {
                tracing::warn!(endpoint = %line.settings.authority(), %error, "its SessionTimeout is not known");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let said = service.get("SessionTimeout").and_then(Value::as_u64);
        let ours = line.settings.session_timeout.as_secs();
        let longer = said.filter(|said| *said > ours);
        line.said_timeout = longer.map(|said| Duration::from_secs(said).min(NEVER));
        line.learned.timeout_fits = longer.is_none();
        let Some(said) = longer else { return Ok(()) };
        let why = format!(
            "the service keeps an idle session for {said} s (SessionTimeout), and session_timeout says {ours} s: a late \
             command could land after that; set session_timeout = \"{said}s\", or a shorter one at the service"
        );
        if call.may_only_read() {
            return Err(line.error(&Effort::reading(), ErrorKind::Settings, why));
        }
        tracing::warn!(endpoint = %line.settings.authority(), why, "what is open is waited out for longer");
        Ok(())
    }
}

/// The paths of a collection's members; `None` where it is not all of them. Of a list in several pages nobody knows whether one moved
/// from one to another between them.
pub fn members(list: &Object) -> Option<Vec<String>> {
    let listed = list.get("Members")?.as_array()?;
    let paths: Option<Vec<String>> =
        listed.iter().map(|one| one.get("@odata.id").and_then(Value::as_str).and_then(path_of)).collect();
    let count = list.get("Members@odata.count").map(Value::as_u64);
    let whole = count.is_none_or(|count| count == Some(listed.len() as u64))
        && !list.contains_key("Members@odata.nextLink");
    paths.filter(|_| whole)
}

#[cfg(test)]
mod tests;
