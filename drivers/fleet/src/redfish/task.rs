//! Tasks: what is under way after a 202 (DSP0266 §12.2).

use std::time::Duration;

use picket_core::time::BootTime;
use serde_json::{Value, json};

use super::{Answer, RedfishBmc};

/// How many are remembered.
pub const TASKS: usize = 16;
/// How long one is under way.
const TAKES: Duration = Duration::from_secs(1);

/// One of them: it is done then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    begun: BootTime,
}

impl Task {
    fn is_done(self, now: BootTime) -> bool {
        now.since(self.begun) >= TAKES
    }
}

impl RedfishBmc {
    /// Something was taken, and is under way.
    pub(super) fn accepted(&mut self, now: BootTime) -> Answer {
        self.last_task += 1;
        let id = self.last_task;
        self.tasks.insert(id, Task { begun: now });
        while self.tasks.len() > TASKS {
            self.tasks.pop_first();
        }
        let body = self.task(now, &id.to_string()).unwrap_or_default();
        Answer { status: 202, body, ..Answer::default() }
            .with("Location", format!("/redfish/v1/TaskService/TaskMonitors/{id}"))
            .with("Retry-After", "1")
    }

    /// A task's monitor: 202 until it is done, then what the action answers.
    pub(super) fn monitor(&mut self, now: BootTime, id: &str) -> Answer {
        let found = id.parse().ok().and_then(|id: u64| self.tasks.get(&id).copied());
        match found {
            None => super::resources::not_found(),
            Some(task) if task.is_done(now) => Answer::empty(204),
            Some(_) => {
                let body = self.task(now, id).unwrap_or_default();
                Answer { status: 202, body, ..Answer::default() }
                    .with("Location", format!("/redfish/v1/TaskService/TaskMonitors/{id}"))
                    .with("Retry-After", "1")
            }
        }
    }

    /// A task as a resource.
    pub(super) fn task(&self, now: BootTime, id: &str) -> Option<Value> {
        let task = self.tasks.get(&id.parse().ok()?)?;
        let state = if task.is_done(now) { "Completed" } else { "Running" };
        Some(json!({
            "@odata.id": format!("/redfish/v1/TaskService/Tasks/{id}"),
            "@odata.type": "#Task.v1_5_0.Task",
            "Id": id, "Name": "Reset", "TaskState": state, "TaskStatus": "OK",
            "StartTime": self.wall(task.begun).to_string(),
            "TaskMonitor": format!("/redfish/v1/TaskService/TaskMonitors/{id}"),
        }))
    }

    /// Their numbers.
    pub(super) fn task_ids(&self) -> impl Iterator<Item = String> {
        self.tasks.keys().map(u64::to_string)
    }
}
