//! An operation: what Compute Engine does for a request. That one is done proves nothing of power; that one is under way may say that
//! an instance is about to be started.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What cannot start an instance that is stopped.
const HARMLESS: [&str; 11] = [
    "stop",
    "detachDisk",
    "attachDisk",
    "setDiskAutoDelete",
    "setLabels",
    "setMetadata",
    "setTags",
    "setScheduling",
    "setDeletionProtection",
    "addAccessConfig",
    "deleteAccessConfig",
];

/// What of an operation matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Operation {
    pub(crate) name: String,
    /// What was asked for: `stop`, `start`, `detachDisk`.
    #[serde(default)]
    pub(crate) operation_type: String,
    #[serde(default)]
    status: Option<String>,
    /// The instance's numeric id.
    #[serde(default)]
    pub(crate) target_id: Option<String>,
    /// What it is about, by name or number.
    #[serde(default)]
    target_link: Option<String>,
    /// The requestId of who asked.
    #[serde(default)]
    pub(crate) client_operation_id: Option<String>,
    #[serde(default)]
    insert_time: Option<String>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    error: Option<Failed>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Failed {
    #[serde(default)]
    errors: Vec<Why>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Why {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl Operation {
    /// Whether it has ended, one way or the other.
    pub(crate) fn is_done(&self) -> bool {
        self.status.as_deref() == Some("DONE")
    }

    /// What there is of one that cannot be read: something that is under way.
    pub(crate) fn unreadable(told: &Value) -> Self {
        let text = |key: &str| told.get(key).and_then(Value::as_str).map(str::to_owned);
        Self {
            name: text("name").unwrap_or_else(|| "without a name".to_owned()),
            operation_type: "what cannot be read".to_owned(),
            target_id: text("targetId"),
            target_link: text("targetLink"),
            ..Self::default()
        }
    }

    /// Whether it may be about that instance. Where its number is not told its link may say another's; a name says nothing as long as
    /// nobody says whose it is.
    pub(crate) fn may_be_of(&self, id: &str, name: Option<&str>) -> bool {
        if let Some(target) = self.target_id.as_deref().filter(|target| !target.is_empty()) {
            return target == id;
        }
        let Some(link) = self.target_link.as_deref() else { return true };
        let Some((_, last)) = link.rsplit_once("/instances/") else { return false };
        match last.bytes().all(|byte| byte.is_ascii_digit()) {
            true => last == id,
            false => name.is_none_or(|name| name == last),
        }
    }

    /// Whether it may start a stopped instance: what is not known surely not to.
    pub(crate) fn may_start(&self) -> bool {
        !self.is_done() && !HARMLESS.contains(&self.operation_type.as_str())
    }

    /// Why it came to nothing.
    pub(crate) fn failed(&self) -> Option<String> {
        let errors = &self.error.as_ref()?.errors;
        let words = errors.iter().map(|why| format!("{}: {}", why.code, why.message));
        Some(words.collect::<Vec<_>>().join("; "))
    }

    /// How long ago it was asked for, by Google's own clock, which said `date` just now.
    pub(crate) fn age(&self, date: OffsetDateTime) -> Option<Duration> {
        let inserted = OffsetDateTime::parse(self.insert_time.as_deref()?, &Rfc3339).ok()?;
        Some(Duration::try_from(date - inserted).unwrap_or(Duration::ZERO))
    }

    /// In words, for people.
    pub(crate) fn words(&self) -> String {
        let status = self.status.as_deref().unwrap_or("without a status");
        let by = self.user.as_deref().map(|user| format!(" by {user}")).unwrap_or_default();
        format!("{} {}{by} ({status})", self.operation_type, self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn operation(kind: &str, status: &str) -> Operation {
        serde_json::from_value(json!({ "name": "o", "operationType": kind, "status": status }))
            .expect("an operation")
    }

    #[test]
    fn what_is_under_way_may_start_an_instance_unless_it_surely_does_not() {
        for (kind, status, may) in [
            ("start", "PENDING", true),
            ("start", "RUNNING", true),
            ("start", "a word of tomorrow", true),
            ("start", "DONE", false),
            ("reset", "RUNNING", true),
            ("resume", "RUNNING", true),
            ("compute.instances.automaticRestart", "RUNNING", true),
            ("a word of tomorrow", "RUNNING", true),
            ("", "", true),
            ("stop", "RUNNING", false),
            ("detachDisk", "PENDING", false),
        ] {
            assert_eq!(operation(kind, status).may_start(), may, "{kind} {status}");
        }
    }

    #[test]
    fn what_does_not_say_whose_it_is_may_be_anybody_s() {
        let link = |rest: &str| format!("https://www.googleapis.com/compute/v1/projects/p/zones/z/{rest}");
        for (id, link, by_number, by_name) in [
            (Some("17"), None, true, true),
            (Some("18"), None, false, false),
            (Some("18"), Some(link("instances/db-1")), false, false),
            (Some(""), None, true, true),
            (None, None, true, true),
            (None, Some(link("instances/17")), true, true),
            (None, Some(link("instances/18")), false, false),
            (None, Some(link("instances/db-1")), true, true),
            (None, Some(link("instances/db-2")), true, false),
            (None, Some(link("disks/db-1")), false, false),
        ] {
            let operation = Operation {
                target_id: id.map(str::to_owned),
                target_link: link.clone(),
                ..operation("start", "RUNNING")
            };
            let said = (operation.may_be_of("17", None), operation.may_be_of("17", Some("db-1")));
            assert_eq!(said, (by_number, by_name), "{id:?} {link:?}");
        }
        let odd = Operation::unreadable(&json!({ "targetId": "17", "status": 5 }));
        assert!(odd.may_be_of("17", None) && !odd.may_be_of("18", None) && odd.may_start());
        assert!(Operation::unreadable(&json!("x")).may_be_of("18", Some("db-2")));
    }

    #[test]
    fn an_operation_says_why_it_failed_and_how_old_it_is() {
        let told = json!({
            "name": "operation-1", "operationType": "stop", "status": "DONE", "user": "a@b", "insertTime": "2026-11-22T09:00:00.500-08:00",
            "error": { "errors": [{ "code": "RESOURCE_NOT_READY", "message": "it is busy" }] },
        });
        let operation: Operation = serde_json::from_value(told).expect("an operation");
        assert_eq!(operation.failed().as_deref(), Some("RESOURCE_NOT_READY: it is busy"));
        assert_eq!(operation.words(), "stop operation-1 by a@b (DONE)");
        let date = OffsetDateTime::parse("2026-11-22T17:00:03Z", &Rfc3339).expect("a time");
        assert_eq!(operation.age(date), Some(Duration::from_millis(2_500)));
        let earlier = OffsetDateTime::parse("2026-11-22T16:59:00Z", &Rfc3339).expect("a time");
        assert_eq!(operation.age(earlier), Some(Duration::ZERO));
        assert_eq!(operation_without_time().age(date), None);
    }

    fn operation_without_time() -> Operation {
        Operation { name: "o".to_owned(), ..Operation::default() }
    }
}
