//! What is found at a service: the system, its reset action and what that takes, its managers, where sessions are made. How the way to the
//! system is found stands in `discovery`.
//!
//! **Invariant.** What the service does not say it can, it is not asked to do: without `ForceOff` among the allowed values there
//! is no driver for it.

use std::pin::Pin;
use std::time::Duration;

use picket_driver::{Call, DriverError, Effort, ErrorKind};
use serde_json::{Map, Value};

use crate::answer::{Answer, path_of};
use crate::ask::Ask;
use crate::asking::unread;
use crate::discovery::Root;
use crate::line::{Line, NO_SESSIONS};
use crate::settings::Authentication;
use crate::whose::Slot;

/// Where everything begins (DSP0266, "Protocol version" and "Service root request").
pub(crate) const ROOT: &str = "/redfish/v1/";
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
pub(crate) struct Found {
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

impl Service {
    /// Reads `path`, which must be an object.
    pub async fn read(
        line: &mut Line,
        call: &Call,
        ask: Ask,
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

    /// The service root, which anybody may read; where sessions are made stands there.
    pub(crate) async fn root(line: &mut Line, call: &Call) -> Result<Root, DriverError> {
        let (_, said) = Self::read(line, call, Ask::open(ROOT), "the service root").await?;
        let direct = said.get("Links").and_then(Value::as_object).and_then(|links| link(links, "Sessions"));
        let session_service = link(&said, "SessionService");
        let below = || Some(format!("{}/Sessions", session_service.as_ref()?.trim_end_matches('/')));
        line.sessions = direct.or_else(below);
        let root = Root { systems: link(&said, "Systems"), session_service };
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
        let read = Self::read(line, call, Ask::get(path), "the session service").await;
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
