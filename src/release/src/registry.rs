//! How releasers are made from settings: one line a kind.

use std::sync::Arc;

use picket_reach::{SettingFault, Settings};
use serde_json::{Map, Value};

use crate::command::Command;
use crate::nothing::Nothing;
use crate::releaser::Releaser;
use crate::volumes::LetGo;
use crate::webhook::Webhook;

/// The kinds that there are; `kubernetes` is made elsewhere.
pub const KINDS: [&str; 5] = ["webhook", "command", "volumes", "kubernetes", "none"];

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
        "kubernetes" => {
            let has = KINDS.into_iter().filter(|known| *known != kind).collect::<Vec<_>>().join(", ");
            let message = format!(
                "releases of kind {kind:?} are not in this build of picketd, which has {has}: take one that was built with it"
            );
            Err(vec![SettingFault { key: "kind".to_owned(), message }])
        }
        other => {
            let message = format!("there is no kind of release {other:?}; known are {}", KINDS.join(", "));
            Err(vec![SettingFault { key: "kind".to_owned(), message }])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gateway makes `kubernetes` itself: whoever comes here with it has a build without it.
    #[test]
    fn a_kind_that_a_build_leaves_out_is_told_from_one_that_nobody_has() {
        for (kind, words) in [
            (
                "kubernetes",
                "releases of kind \"kubernetes\" are not in this build of picketd, which has webhook, command, volumes, none: take one that was \
                 built with it",
            ),
            (
                "kubernets",
                "there is no kind of release \"kubernets\"; known are webhook, command, volumes, kubernetes, none",
            ),
        ] {
            let faults = make("x", kind, &Map::new()).expect_err(kind);
            let told: Vec<_> =
                faults.iter().map(|fault| (fault.key.as_str(), fault.message.as_str())).collect();
            assert_eq!(told, [("kind", words)]);
        }
    }
}
