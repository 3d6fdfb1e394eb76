//! All that the store keeps, for a backup.

use picket_audit::Told;
use picket_core::store::{Content, StoreError};
use serde_json::json;

use super::Engine;

impl Engine {
    /// What the store keeps at this moment. It is audited: whoever has a backup knows the fleet.
    pub async fn backup(&self, caller: &str) -> Result<Content, StoreError> {
        let taken = self.shared.parts.store.dump().await;
        let (outcome, how) = match &taken {
            Ok(content) => ("accepted", format!("{} records", content.records.len())),
            Err(error) => ("refused", error.to_string()),
        };
        let mut details = json!({ "call": "backup", "outcome": outcome, "how": how });
        if let Some(shown) = self.acting.shown() {
            details["person"] = shown.into();
        }
        self.audit().tell(Told {
            at: self.clock().wall().millis(),
            who: caller.to_owned(),
            role: self.acting.roles.clone(),
            what: "request".to_owned(),
            details,
            ..Told::default()
        });
        taken
    }
}
