//! `picketd --print-settings` and `--print-schema`.
//!
//! # Invariants
//!
//! - What is printed is what a start would take: the drivers and releases have read their tables as well,
//!   and a fault of theirs is told in its place. Shown by
//!   `what_is_in_force_is_printed_and_can_be_loaded_again`, `wrong_settings_have_the_faults_of_a_start`.
//! - Nothing is started, made or sent.

use std::io::Write;
use std::path::Path;

use picket_config::{Settings, Sources};
use picket_driver::Context;

use crate::arguments::Output;
use crate::build;
use crate::drivers::{Drivers, Trial};
use crate::failure::Failure;

/// Prints what is in force.
pub(crate) fn settings(file: &Path, form: Output, context: &Context, trial: Trial) -> Result<(), Failure> {
    out(&in_force(&Sources::at(file), form, context, trial)?)
}

fn in_force(sources: &Sources, form: Output, context: &Context, trial: Trial) -> Result<String, Failure> {
    let (settings, told, effective) = Settings::read_effective(sources).map_err(Failure::Settings)?;
    build::all(&settings, told, context, &Drivers::before(trial)).map_err(Failure::Settings)?;
    Ok(match form {
        Output::Toml => effective.to_toml(&sources.file),
        Output::Json => format!("{:#}\n", effective.to_json()),
    })
}

/// Prints the schema.
pub(crate) fn schema() -> Result<(), Failure> {
    out(&picket_schema::shipped())
}

/// A reader that ends early (`| head`) is an error, and no panic.
fn out(text: &str) -> Result<(), Failure> {
    std::io::stdout().lock().write_all(text.as_bytes()).map_err(Failure::Print)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use picket_engine::clock::SystemClock;

    use super::*;

    fn printed(text: &str, variables: &[(&str, &str)], form: Output) -> Result<String, String> {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("picket.toml");
        std::fs::write(&file, text).expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("set");
        let environment: BTreeMap<String, String> =
            variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let sources = Sources { directory: home.path().join("conf.d"), file, environment };
        let context = Context { clock: Arc::new(SystemClock), random: Arc::new(|_: &mut [u8]| {}) };
        in_force(&sources, form, &context, Trial::default()).map_err(|failure| failure.to_string())
    }

    const GOOD: &str = "[nodes.n1.devices.sim]\ndriver = \"sim\"\nmachine = \"n1\"\n";

    #[test]
    fn what_is_in_force_is_printed_and_can_be_loaded_again() {
        let first = printed(GOOD, &[("PICKET__RULES__DWELL", "2s")], Output::Toml).expect("right settings");
        assert!(first.contains("\ndwell = \"2s\"  # PICKET__RULES__DWELL\n"), "{first}");
        let second = printed(&first, &[], Output::Toml).expect("what was printed");
        let set = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.starts_with('#') && line.contains(" = "));
            lines.map(|line| line.split("  # ").next().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(set(&first), set(&second));
        let document = printed(GOOD, &[], Output::Json).expect("right settings");
        let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
        assert!(document["settings"].as_array().is_some_and(|rows| rows.len() > 50), "{document}");
    }

    /// The configuration, a driver and a release find one fault each, and nothing is printed, least of all a secret.
    #[test]
    fn wrong_settings_have_the_faults_of_a_start() {
        let text = "[rules]\nreadings = 1\n[releases.x]\nkind = \"webhook\"\ntoken = \"hidden\"\n\
            [nodes.n1]\nreleases = [\"x\"]\n[nodes.n1.devices.sim]\ndriver = \"sim\"\ncolour = \"red\"\n";
        let said = printed(text, &[], Output::Toml).expect_err("wrong settings");
        for wanted in ["rules.readings", "releases.x.token", "releases.x.url", "nodes.n1.devices.sim.colour"]
        {
            assert!(said.contains(wanted), "{wanted} in {said}");
        }
        assert!(said.starts_with("the settings are wrong:\n") && !said.contains("hidden"), "{said}");
    }
}
