//! What is found at a service: the system, its reset action and what that takes, its managers, where sessions are made.
//!
//! **Invariant.** What the service does not say it can, it is not asked to do: without `ForceOff` among the allowed values there
//! is no driver for it.

use std::pin::Pin;
use std::time::Duration;

use picket_driver::{Call, DriverError, Effort, ErrorKind};
use serde_json::{Map, Value};

use crate::answer::{Answer, path_of, tame};
use crate::ask::Ask;
use crate::asking::unread;
use crate::line::{Line, NO_SESSIONS};
use crate::settings::Authentication;
use crate::whose::{Slot, slot};

/// Where everything begins (DSP0266, "Protocol version" and "Service root request").
pub(crate) const ROOT: &str = "/redfish/v1/";
/// No service keeps an idle session for longer than a day (`SessionTimeout`, DSP2046: 86400 s at most). One that says so much, and be it by the
/// largest number there is, ends none by itself.
pub const NEVER: Duration = Duration::from_secs(365 * 86_400);
/// How many ids are named in an error.
const NAMED: usize = 8;

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
    pub async fn root(line: &mut Line, call: &Call) -> Result<Object, DriverError> {
        let (_, root) = Self::read(line, call, Ask::open(ROOT), "the service root").await?;
        let direct = root.get("Links").and_then(Value::as_object).and_then(|links| link(links, "Sessions"));
        let below =
            || link(&root, "SessionService").map(|path| format!("{}/Sessions", path.trim_end_matches('/')));
        line.sessions = direct.or_else(below);
        Ok(root)
    }

    /// Compares what the settings say of a session's life with what the service says, which may have been told otherwise since. A
    /// check refuses what is longer; a fence goes on, and what was sent is waited out for the longer one.
    async fn compare_timeout(line: &mut Line, call: &Call, root: &Object) -> Result<(), DriverError> {
        let Some(path) = link(root, "SessionService").filter(|_| line.session.is_some()) else {
            return Ok(());
        };
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

    /// Looks at everything anew.
    ///
    /// # Errors
    /// Something is missing without which nothing is safe; it says what.
    pub(crate) async fn discover(line: &mut Line, call: &Call) -> Result<Found, DriverError> {
        let root = Self::root(line, call).await?;
        let Some(systems) = link(&root, "Systems") else {
            let why = "the service has no computer systems (Systems)";
            return Err(line.error(&Effort::reading(), ErrorKind::Unsupported, why));
        };
        let system = match line.settings.system.clone() {
            Some(id) => Self::named(line, call, &systems, &id).await?,
            None => Self::only(line, call, &systems).await?,
        };
        // A session is there by now, if there are any.
        Self::compare_timeout(line, call, &root).await?;
        let (_, object) = Self::read(line, call, Ask::get(&system), "the system").await?;
        // What is asked after this may be answered elsewhere.
        let (slot, certificate) = (slot(line, &object), line.certificate.clone());
        let action = object.get("Actions").and_then(|actions| actions.get("#ComputerSystem.Reset"));
        let action = action.and_then(Value::as_object).cloned().unwrap_or_default();
        let Some(reset) = action.get("target").and_then(Value::as_str).and_then(path_of) else {
            let why =
                "the system has no action #ComputerSystem.Reset with a target: it cannot be switched off";
            return Err(line.error(&Effort::reading(), ErrorKind::Unsupported, why));
        };
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
        line.service = Some(service.clone());
        Ok(Found { service, system: object, slot, certificate })
    }

    /// The system of that id.
    async fn named(line: &mut Line, call: &Call, systems: &str, id: &str) -> Result<String, DriverError> {
        let path = format!("{}/{id}", systems.trim_end_matches('/'));
        let effort = &mut Effort::reading();
        let answer = line.ask(&Ask::get(&path), call, effort).await?;
        if answer.status == 200 {
            return Ok(path);
        }
        if !matches!(answer.status, 400 | 404) {
            return Err(unread(line, &answer, "the system"));
        }
        // Some name their systems otherwise than they place them: the collection knows.
        let members = Self::systems(line, call, systems).await?;
        let last = |path: &String| path.trim_end_matches('/').rsplit('/').next() == Some(id);
        match members.iter().find(|path| last(path)) {
            Some(path) => Ok(path.clone()),
            None => {
                let why = format!("there is no system {id:?}; there are {}", names(&members));
                Err(line.error(effort, ErrorKind::Settings, why))
            }
        }
    }

    /// The only system.
    async fn only(line: &mut Line, call: &Call, systems: &str) -> Result<String, DriverError> {
        let members = Self::systems(line, call, systems).await?;
        match &members[..] {
            [only] => Ok(only.clone()),
            [] => {
                let why = "the service names no computer system; it may be starting";
                Err(line.error(&Effort::reading(), ErrorKind::Protocol, why))
            }
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
        let (_, list) = Self::read(line, call, Ask::get(systems), "the list of systems").await?;
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
        let (_, info) = Self::read(line, call, Ask::get(info), "what the reset takes (ActionInfo)").await?;
        let parameters = info.get("Parameters").and_then(Value::as_array);
        let reset_type = parameters
            .into_iter()
            .flatten()
            .find(|one| one.get("Name").and_then(Value::as_str) == Some("ResetType"));
        Ok(reset_type.and_then(|one| texts(one.get("AllowableValues"))).unwrap_or_default())
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

fn names(members: &[String]) -> String {
    let ids = members.iter().filter_map(|path| path.trim_end_matches('/').rsplit('/').next());
    let mut shown: Vec<String> = ids.take(NAMED).map(|id| format!("{:?}", tame(id))).collect();
    if members.len() > NAMED {
        shown.push(format!("{} more", members.len() - NAMED));
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use picket_core::power::Power;
    use picket_core::time::{BootTime, Clock, WallTime};
    use picket_driver::conformance::orders::Orders;
    use picket_driver::{Effect, PowerDriver};
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    use super::*;
    use crate::connection::tests::{Place, place};
    use crate::driver::RedfishDriver;
    use crate::pool::Pool;
    use crate::settings::Settings;

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn boot(&self) -> BootTime {
            BootTime::default()
        }

        fn wall(&self) -> WallTime {
            WallTime::default()
        }
    }

    /// A driver of a system that is off and whose reset takes those, and what it was asked.
    async fn off_and_offering(allowed: Value) -> (RedfishDriver, Arc<Mutex<Vec<String>>>) {
        let Place { listener, acceptor, settings, .. } = place().await;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = asked.clone();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("somebody comes");
            let mut stream = acceptor.accept(stream).await.expect("hands are shaken");
            let mut piece = [0; 4_096];
            while let Ok(length @ 1..) = stream.read(&mut piece).await {
                let text = String::from_utf8_lossy(&piece[..length]).into_owned();
                let line = text.lines().next().unwrap_or_default().to_owned();
                let reset = json!({ "target": "/s/1/reset", "ResetType@Redfish.AllowableValues": allowed });
                let said = match line.split(' ').nth(1) {
                    Some("/redfish/v1/") => json!({ "Systems": { "@odata.id": "/s" } }),
                    Some("/s") => json!({ "Members": [{ "@odata.id": "/s/1" }] }),
                    _ => json!({ "PowerState": "Off", "Actions": { "#ComputerSystem.Reset": reset } }),
                };
                heard.lock().expect("whole").push(line);
                let said = said.to_string();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{said}", said.len());
                stream.write_all(answer.as_bytes()).await.expect("written");
                stream.flush().await.expect("written");
            }
        });
        // Without a session there is no more to answer.
        let settings = Settings { authentication: Authentication::Basic, ..settings };
        (RedfishDriver::new(settings, &Pool::default()).expect("no file is needed"), asked)
    }

    /// A button does what the machine's state makes of it, and a restart is no on (S9).
    #[tokio::test]
    async fn what_offers_no_absolute_on_is_not_switched_on_in_another_way() {
        let others = [
            "ForceOff",
            "PushPowerButton",
            "PowerCycle",
            "FullPowerCycle",
            "ForceRestart",
            "GracefulRestart",
            "Nmi",
        ];
        let (driver, asked) = off_and_offering(json!(others)).await;
        let orders = Orders::new(driver.traits(), Arc::new(Still)).await.expect("orders");
        // No bound of an idle machine: what is slow here is the machine.
        let call = Call::control(Instant::now() + Duration::from_secs(30), Arc::new(Still), orders.permit());
        assert_eq!(driver.read_power(&call).await.expect("a reading").power, Power::Off);
        let order = orders.on_in(driver.session()).await.expect("an order");
        let error = driver.power_on(order, &call).await.expect_err("it cannot be switched on");
        assert_eq!((error.kind, error.effect), (ErrorKind::Unsupported, Effect::DidNotHappen), "{error}");
        assert!(error.detail.contains("offers neither On nor ForceOn"), "{error}");
        let asked = asked.lock().expect("whole");
        assert!(asked.iter().all(|line| line.starts_with("GET ")), "{asked:?}");
    }

    #[test]
    fn only_a_whole_list_says_what_is_not_in_it() {
        let said = |list: Value| members(list.as_object().expect("an object"));
        let one = json!({ "@odata.id": "/s/1" });
        assert_eq!(said(json!({ "Members": [one] })), Some(vec!["/s/1".to_owned()]));
        assert_eq!(said(json!({ "Members": [], "Members@odata.count": 0 })), Some(Vec::new()));
        for odd in [
            json!({}),
            json!({ "Members": {} }),
            json!({ "Members": [one], "Members@odata.count": 2 }),
            json!({ "Members": [one], "Members@odata.count": "1" }),
            json!({ "Members": [one], "Members@odata.nextLink": "/s?skip=1" }),
            json!({ "Members": [one, {}] }),
        ] {
            assert_eq!(said(odd.clone()), None, "{odd}");
        }
    }
}
