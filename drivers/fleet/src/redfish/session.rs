//! Who asks: sessions with tokens, and basic authentication (DSP0266 §13.3).

use picket_core::time::BootTime;
use picket_driver_sim::{Fault, Login, Request as Asked, Response, SessionId, Trouble, World};
use serde_json::{Value, json};

use super::{Answer, Caller, Handled, RedfishBmc, Request};
use crate::account::Role;

/// Where sessions are.
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// A session; its key is its id.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) world: SessionId,
    token: String,
    pub(super) user: String,
}

impl RedfishBmc {
    /// Forgets the sessions that the world does not know any more.
    pub(super) fn reap(&mut self, world: &mut World, now: BootTime) {
        let device = &self.options.device;
        self.sessions.retain(|_, session| world.knows(device, session.world, now));
    }

    /// A new session.
    pub(super) fn log_in(&mut self, now: BootTime, world: &mut World, body: &[u8]) -> Handled {
        let said: Value = serde_json::from_slice(body).unwrap_or_default();
        let (Some(user), Some(password)) = (said["UserName"].as_str(), said["Password"].as_str()) else {
            return Ok(Answer::error(400, "PropertyMissing", "UserName and Password are required."));
        };
        let is_refused = world.suffers(&self.options.device, &Fault::LoginsRefused);
        if is_refused || !self.is_account(user, password) {
            return Ok(Answer::unauthorized());
        }
        let id = match world.hand(now, &self.options.device, None, &Asked::Open) {
            Ok(Response::Opened(id)) => id,
            Ok(_) => return Answer::trouble(Trouble::Refused),
            Err(trouble) => return Answer::trouble(trouble),
        };
        let (token, name) =
            (format!("{:016x}{:016x}", self.random.bits(), self.random.bits()), self.random.bits());
        let name = format!("{name:016x}");
        let session = Session { world: id, token: token.clone(), user: user.to_owned() };
        self.sessions.insert(name.clone(), session);
        let says = world.faults(&self.options.device).iter().find_map(|fault| match fault {
            Fault::LoginSays(says) => Some(*says),
            _ => None,
        });
        let (place, id) = (format!("{SESSIONS}/{name}"), json!({"Id": name}));
        let whole = self.session(&name).unwrap_or_default();
        let (token, place, body) = match says {
            None => (Some(token), Some(place), whole),
            Some(Login::Slashless) => (Some(token), Some(place.trim_start_matches('/').to_owned()), id),
            Some(Login::Beside) => {
                (Some(token), Some(format!("/redfish/v1/AccountService/Accounts/{name}")), id)
            }
            Some(Login::Id) => (Some(token), None, id),
            Some(Login::Token) => (Some(token), None, Value::Null),
            Some(Login::Place) => (None, Some(place), whole),
        };
        let said = [("X-Auth-Token", token), ("Location", place)];
        let headers = said.into_iter().filter_map(|(header, value)| Some((header, value?))).collect();
        Ok(Answer { status: 201, headers, body, ..Answer::default() })
    }

    /// A session as a resource.
    pub(super) fn session(&self, name: &str) -> Option<Value> {
        let session = self.sessions.get(name)?;
        Some(json!({
            "@odata.id": format!("{SESSIONS}/{name}"),
            "@odata.type": "#Session.v1_3_0.Session",
            "Id": name, "Name": "Session", "UserName": session.user,
        }))
    }

    /// Ends a session.
    pub(super) fn log_out(&mut self, now: BootTime, world: &mut World, name: &str) -> Handled {
        let Some(session) = self.sessions.remove(name) else { return Ok(super::resources::not_found()) };
        match world.hand(now, &self.options.device, Some(session.world), &Asked::Close) {
            Err(Trouble::Silence) => Answer::trouble(Trouble::Silence),
            _ => Ok(Answer { late: world.late_end(&self.options.device), ..Answer::empty(204) }),
        }
    }

    /// Who sent this; else what is answered.
    pub(super) fn who(
        &mut self,
        now: BootTime,
        world: &mut World,
        request: &Request,
    ) -> Result<Caller, Handled> {
        let caller = if let Some(token) = request.headers.get("x-auth-token") {
            let found = self.sessions.values().find(|session| session.token == *token);
            let Some(session) = found else {
                self.turned_away += 1;
                return Err(Ok(Answer::unauthorized()));
            };
            Caller::Session(session.world)
        } else {
            let basic = request.headers.get("authorization").and_then(|value| value.strip_prefix("Basic "));
            let credentials = basic.and_then(|text| decode(text.trim()));
            let known = credentials.as_deref().and_then(|text| text.split_once(':'));
            if !known.is_some_and(|(user, password)| self.is_account(user, password)) {
                return Err(Ok(Answer::unauthorized()));
            }
            Caller::Alone
        };
        match self.ask(now, world, caller, &Asked::Touch) {
            Ok(_) => Ok(caller),
            Err(trouble) => Err(Answer::trouble(trouble)),
        }
    }

    /// What whoever sent this may do, who was let in.
    pub(super) fn role(&self, request: &Request) -> Role {
        let by_token = request.headers.get("x-auth-token").and_then(|token| {
            self.sessions.values().find(|session| session.token == *token).map(|session| session.user.clone())
        });
        let by_basic = || {
            let text = request.headers.get("authorization")?.strip_prefix("Basic ")?;
            decode(text.trim())?.split_once(':').map(|(user, _)| user.to_owned())
        };
        let user = by_token.or_else(by_basic).unwrap_or_default();
        let account = self.options.accounts.iter().find(|account| account.name == user);
        account.map_or(Role::User, |account| account.role)
    }

    fn is_account(&self, user: &str, password: &str) -> bool {
        self.options.accounts.iter().any(|account| account.name == user && account.password == password)
    }
}

/// Base 64 (RFC 4648 §4), to text.
fn decode(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::decode;

    /// RFC 7617 §2, RFC 4648 §10.
    #[test]
    fn base_64_is_that_of_the_rfcs() {
        for (text, plain) in [
            ("QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin:open sesame"),
            ("Zg==", "f"),
            ("Zm9v", "foo"),
            ("Zm9vYmE=", "fooba"),
            ("", ""),
        ] {
            assert_eq!(decode(text).as_deref(), Some(plain));
        }
        assert_eq!(decode("no base64"), None);
    }
}
