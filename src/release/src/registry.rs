//! How releasers are made from settings: one line a kind.

use std::sync::Arc;

use picket_reach::{SettingFault, Settings, unmade};
use serde_json::{Map, Value};

use crate::command::Command;
use crate::nothing::Nothing;
use crate::releaser::Releaser;
use crate::volumes::LetGo;
use crate::webhook::Webhook;

/// The kinds that are made here; the gateway makes `kubernetes`, where its build has it.
pub const KINDS: [&str; 4] = ["webhook", "command", "volumes", "none"];

/// Makes the releaser `name` of a kind; all faults of its table at once. Reads what the settings name (a token, a CA),
/// but sends nothing.
///
/// All kinds have the keys `deadline` (of the whole release, default `10m`), `settle` (from the confirmed Off to the
/// first attempt, default `2s`) and `attempt` (one attempt, default `15s`).
pub fn make(
    name: &str,
    kind: &str,
    settings: &Map<String, Value>,
) -> Result<Arc<dyn Releaser>, Vec<SettingFault>> {
    let mut settings = Settings::new(settings);
    match kind {
        "webhook" => {
            let made = Webhook::read(name, &mut settings);
            Ok(Arc::new(settings.finish(made)?))
        }
        "command" => {
            let made = Command::read(name, &mut settings);
            Ok(Arc::new(settings.finish(made)?))
        }
        "volumes" => {
            let made = LetGo::read(name, &mut settings);
            Ok(Arc::new(settings.finish(made)?))
        }
        "none" => {
            let made = Nothing::read(&mut settings);
            Ok(Arc::new(settings.finish(Some(made))?))
        }
        other => {
            let message = unmade("kind of release", other, &KINDS, &[]);
            Err(vec![SettingFault { key: "kind".to_owned(), message }])
        }
    }
}
