//! Its sessions, and the lists of them and of tasks.

use std::time::Instant;

use serde_json::{Value, json};

use super::{PASSWORD, Reply, SESSIONS, Says, USER, World};

/// Where its tasks begin.
pub const TASK_SERVICE: &str = "/redfish/v1/TaskService";

/// A session there.
#[derive(Debug)]
pub struct Session {
    pub token: String,
    pub used: Instant,
}

impl World {
    /// How many sessions are open.
    pub fn open_sessions(&mut self) -> usize {
        self.settle();
        self.sessions.len()
    }

    /// Ends all sessions, as their idleness would.
    pub fn end_sessions(&mut self) {
        self.sessions.clear();
    }

    pub(super) fn log_in(&mut self, body: &Value) -> Reply {
        if let Some(status) = self.odd.refuses_logins {
            return Reply::json(status, json!({ "error": { "message": "no login" } }));
        }
        if body["UserName"] != USER || body["Password"] != PASSWORD {
            return Reply::json(401, json!({ "error": { "message": "wrong name or password" } }));
        }
        if self.sessions.len() >= self.most_sessions {
            let full = json!({ "MessageId": "Base.1.8.SessionLimitExceeded", "Message": "no session left" });
            return Reply::json(503, json!({ "error": { "@Message.ExtendedInfo": [full] } }));
        }
        self.next += 1;
        let lowest = (1..).find(|id| !self.sessions.contains_key(id)).unwrap_or(self.next);
        let id = if self.reuses { lowest } else { self.next };
        let token = format!("token-{}", self.next);
        self.sessions.insert(id, Session { token: token.clone(), used: Instant::now() });
        // As DSP0266 allows: an absolute link, here with another name of the same host.
        let place = format!("https://bmc.example{}/{id}", self.sessions_at());
        let says = self.odd.says;
        let mut body = if says == Says::Token { json!({}) } else { json!({ "Id": id.to_string() }) };
        if let Some(roles) = &self.odd.roles {
            body["Roles"] = roles.clone();
        }
        let reply = Reply::json(201, body);
        let reply = if says == Says::Place { reply } else { reply.with("X-Auth-Token", token) };
        match says {
            Says::All | Says::Place => reply.with("Location", place),
            Says::Slashless => reply.with("Location", format!("{}/{id}", &self.sessions_at()[1..])),
            Says::Beside => reply.with("Location", format!("/redfish/v1/AccountService/Accounts/{id}")),
            Says::Id | Says::Token => reply,
        }
    }

    pub(super) fn sessions_at(&self) -> &'static str {
        self.odd.sessions_at.unwrap_or(SESSIONS)
    }

    /// The service root.
    pub(super) fn root(&self, is_stranger: bool) -> Value {
        let mut root = json!({});
        if is_stranger && self.odd.root_is_bare {
            return root;
        }
        if self.has_sessions {
            root["SessionService"] = json!({ "@odata.id": "/redfish/v1/SessionService" });
            root["Links"] = json!({ "Sessions": { "@odata.id": self.sessions_at() } });
        }
        if is_stranger && self.hides_from_strangers {
            return root;
        }
        root["Systems"] = json!({ "@odata.id": "/redfish/v1/Systems" });
        if self.has_task_service {
            root["Tasks"] = json!({ "@odata.id": TASK_SERVICE });
        }
        root
    }

    /// Sessions, tasks, and each of them; `None`: there is no such resource.
    pub(super) fn list(&self, path: &str) -> Option<Reply> {
        let tasks = format!("{TASK_SERVICE}/Tasks");
        let collection = |path: &str, ids: Vec<String>| {
            let members: Vec<Value> =
                ids.iter().map(|id| json!({ "@odata.id": format!("{path}/{id}") })).collect();
            Reply::json(200, json!({ "Members": members, "Members@odata.count": ids.len() }))
        };
        let sessions = self.sessions_at();
        if path == sessions {
            return Some(collection(sessions, self.sessions.keys().map(u32::to_string).collect()));
        }
        if let Some(id) = path.strip_prefix(sessions).and_then(|id| id.trim_start_matches('/').parse().ok()) {
            let session = json!({ "@odata.id": path, "UserName": USER });
            return self.sessions.contains_key(&id).then(|| Reply::json(200, session));
        }
        if !self.has_task_service {
            return None;
        }
        if path == TASK_SERVICE {
            return Some(Reply::json(200, json!({ "Tasks": { "@odata.id": tasks } })));
        }
        if path == tasks {
            return Some(collection(&tasks, (0..self.tasks.len()).map(|id| id.to_string()).collect()));
        }
        let id: usize = path.strip_prefix(&tasks)?.trim_start_matches('/').parse().ok()?;
        let state = if Instant::now() < *self.tasks.get(id)? { "Running" } else { "Completed" };
        Some(Reply::json(200, json!({ "TaskState": state })))
    }
}
