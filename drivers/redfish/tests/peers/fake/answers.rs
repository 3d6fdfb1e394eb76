//! What it does, and answers.

use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Asked, MANAGER, PASSWORD, RESET, Reply, SYSTEM, USER, World};

impl World {
    pub(super) fn carry_out(&mut self, request: &Asked) -> Reply {
        let path = request.path.as_str();
        if let Some(rest) = self.odd.starts_for.filter(|_| request.method == "GET") {
            let said = json!({ "error": { "message": "the service is starting" } });
            return Reply::json(503, said).with("Retry-After", rest);
        }
        let sessions = self.sessions_at();
        if request.method == "POST" && path == sessions && self.has_sessions {
            return self.log_in(&request.body);
        }
        let basic = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
        let by_token = request.token.as_ref().and_then(|token| {
            self.sessions.iter_mut().find(|(_, session)| session.token == *token).map(|(id, session)| {
                session.used = Instant::now();
                *id
            })
        });
        let is_known = request.basic.as_deref() == Some(&basic) && !self.odd.no_basic;
        let is_stranger = by_token.is_none() && !is_known;
        // Of a place for sessions that is none it says so to anybody.
        if is_stranger && request.method == "POST" && self.odd.sessions_at.is_some() {
            return none();
        }
        if path == "/redfish/v1/" {
            if let Some(status) = self.odd.root_is_refused.filter(|_| is_stranger) {
                return Reply::json(status, json!({ "error": { "message": "who are you" } }));
            }
            return Reply::json(200, self.root(is_stranger));
        }
        if is_stranger {
            return Reply::json(401, json!({ "error": { "message": "who are you" } }));
        }
        match (request.method.as_str(), path) {
            ("GET", "/redfish/v1/SessionService") => {
                Reply::json(200, json!({ "SessionTimeout": self.session_timeout }))
            }
            ("GET", "/redfish/v1/Systems") if self.odd.names_no_system => {
                Reply::json(200, json!({ "Members": [], "Members@odata.count": 0 }))
            }
            ("GET", "/redfish/v1/Systems") => {
                let others = self.others.iter().map(|id| format!("/redfish/v1/Systems/{id}"));
                let members: Vec<Value> = std::iter::once(SYSTEM.to_owned())
                    .chain(others)
                    .map(|id| json!({ "@odata.id": id }))
                    .collect();
                Reply::json(200, json!({ "Members": members }))
            }
            ("GET", SYSTEM) => {
                let reply = Reply::json(200, self.system());
                match self.odd.etag.header {
                    Some(etag) => reply.with("ETag", etag),
                    None => reply,
                }
            }
            ("GET", "/redfish/v1/Systems/437/ResetActionInfo") => {
                let value = json!({ "Name": "ResetType", "AllowableValues": self.allowed });
                Reply::json(200, json!({ "Parameters": [value] }))
            }
            ("GET", MANAGER) if !self.tells_reset => Reply::json(200, json!({})),
            ("GET", MANAGER) => {
                let mut said = self.manager.clone();
                said["LastResetTime"] = self.last_reset.clone();
                said["DateTime"] = json!(format!("2026-11-23T00:{:02}:{:02}Z", self.now / 60, self.now % 60));
                Reply::json(200, said)
            }
            ("PATCH", SYSTEM) if request.if_match.as_deref() != self.odd.etag.wants => {
                Reply::json(self.odd.etag.refuses, json!({}))
            }
            ("PATCH", SYSTEM) => match (request.body["PowerRestorePolicy"].as_str(), &self.policy) {
                (Some(policy), Some(_)) => {
                    self.policy = Some(policy.to_owned());
                    self.done()
                }
                _ => self.board.change(&request.body).unwrap_or_else(|| Reply::json(400, json!({}))),
            },
            ("GET", "/redfish/v1/Systems/437/Bios") => match &self.board.bios {
                Some(attributes) => Reply::json(200, json!({ "Attributes": attributes })),
                None => none(),
            },
            ("POST", RESET) => self.reset(&request.body),
            ("DELETE", path) => {
                let id = path.strip_prefix(sessions).and_then(|id| id.trim_start_matches('/').parse().ok());
                match id.and_then(|id: u32| self.sessions.remove(&id)) {
                    Some(_) => Reply::raw(204, ""),
                    None => Reply::json(404, json!({})),
                }
            }
            ("GET", path) if path.starts_with("/redfish/v1/TaskService/TaskMonitors/") => {
                let task = path.rsplit('/').next().and_then(|id| id.parse::<usize>().ok());
                match task.and_then(|id| self.tasks.get(id)) {
                    Some(end) if Instant::now() < *end => Reply::json(202, json!({})),
                    Some(_) => Reply::raw(204, ""),
                    None => Reply::json(404, json!({})),
                }
            }
            ("GET", path) => self.list(path).unwrap_or_else(none),
            _ => none(),
        }
    }
}

fn none() -> Reply {
    Reply::json(404, json!({ "error": { "message": "no such resource" } }))
}
