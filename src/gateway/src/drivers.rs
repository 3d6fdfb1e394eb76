//! The drivers that this gateway has: one line each.

use std::sync::Arc;
use std::time::Duration;

use picket_driver::DriverKind;
use picket_engine::Parents;
use picket_liveness::Source;
use picket_release::{Releaser, SettingFault, unmade};
use serde_json::{Map, Value};

use crate::units::Units;

/// What a daemon under test is told of the peers before it. The shipped one is told nothing, and no setting says any of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trial {
    /// EC2 takes a command no later than that after the time of its signature; `None`: AWS's own promise holds.
    pub ec2_takes: Option<Duration>,
}

/// What devices are made of. The same for the gateway's whole life: drivers share what they know.
#[derive(Debug)]
pub(crate) struct Drivers {
    pub(crate) kinds: Vec<Box<dyn DriverKind>>,
    /// The way from a node to the one on which it runs.
    pub(crate) parents: Arc<Parents>,
    /// What their devices share.
    pub(crate) units: Units,
}

impl Default for Drivers {
    fn default() -> Self {
        Self::before(Trial::default())
    }
}

impl Drivers {
    /// Before such peers.
    pub(crate) fn before(trial: Trial) -> Self {
        Self { kinds: kinds(trial), parents: Arc::default(), units: Units::default() }
    }
}

/// The kind of releases, and of liveness sources, that a build may leave out.
const KUBERNETES: &str = "kubernetes";

/// The releaser `name` of a kind; all faults of its table at once.
pub(crate) fn releaser(
    name: &str,
    kind: &str,
    settings: &Map<String, Value>,
) -> Result<Arc<dyn Releaser>, Vec<SettingFault>> {
    match kind {
        #[cfg(feature = "kubernetes")]
        KUBERNETES => picket_kubernetes::OutOfService::make(settings),
        kind if picket_release::KINDS.contains(&kind) => picket_release::make(name, kind, settings),
        other => Err(no_kind("kind of release", other, &picket_release::KINDS)),
    }
}

/// Why nothing is made of a kind. `own`: those that each build has.
fn no_kind(what: &str, kind: &str, own: &[&str]) -> Vec<SettingFault> {
    let here = cfg!(feature = "kubernetes").then_some(KUBERNETES);
    let has: Vec<&str> = own.iter().copied().chain(here).collect();
    vec![SettingFault { key: "kind".to_owned(), message: unmade(what, kind, &has, &[KUBERNETES]) }]
}

/// The liveness source of a kind; all faults of its table at once.
pub(crate) fn source(kind: &str, settings: &Map<String, Value>) -> Result<Source, Vec<SettingFault>> {
    match kind {
        #[cfg(feature = "kubernetes")]
        KUBERNETES => picket_kubernetes::Alive::source(settings),
        kind if picket_liveness::KINDS.contains(&kind) => Source::read(kind, settings),
        other => Err(no_kind("kind of liveness source", other, &picket_liveness::KINDS)),
    }
}

/// All of them. A new driver is one more line here.
#[cfg_attr(not(feature = "aws"), expect(unused_variables, reason = "nothing of it is of another driver"))]
fn kinds(trial: Trial) -> Vec<Box<dyn DriverKind>> {
    vec![
        #[cfg(feature = "agent")]
        Box::new(picket_driver_agent::AgentKind::default()),
        #[cfg(feature = "aws")]
        Box::new(picket_driver_aws::AwsKind::before(trial.ec2_takes)),
        #[cfg(feature = "gcp")]
        Box::new(picket_driver_gcp::GcpKind::default()),
        #[cfg(feature = "ipmi")]
        Box::new(picket_driver_ipmi::IpmiKind),
        #[cfg(feature = "openstack")]
        Box::new(picket_driver_openstack::OpenstackKind::default()),
        #[cfg(feature = "redfish")]
        Box::new(picket_driver_redfish::RedfishKind::default()),
        Box::new(picket_driver_sim::SimKind::default()),
    ]
}

#[cfg(test)]
mod schema;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use picket_driver::Context;
    use picket_engine::clock::SystemClock;

    use super::*;

    const EXAMPLE: &str = include_str!("../../../deploy/picket.example.toml");
    /// No kind has this key.
    const UNKNOWN: &str = "no-such-key";

    /// The part of the example that shows a kind: from its line, in or after the section `from`, to the next section.
    fn shown(from: &str, line: &str) -> Vec<&'static str> {
        let begins = |text: &&str, with: &str| text.trim_start_matches('#').starts_with(with);
        let lines = EXAMPLE.lines().skip_while(|text| !begins(text, from));
        let mut lines = lines.skip_while(|text| !begins(text, line));
        let first = lines.next().unwrap_or_else(|| panic!("{line} is not in the example"));
        let rest = lines.take_while(|text| !text.trim_start_matches('#').starts_with('['));
        let is_key = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        std::iter::once(first).chain(rest).flat_map(move |text| text.split(move |c| !is_key(c))).collect()
    }

    /// The keys that a kind knows: it names them where it is given one that it does not know.
    #[track_caller]
    fn all_shown(from: &str, line: &str, faults: &[(String, String)]) {
        let told = faults.iter().find(|(key, _)| key == UNKNOWN).expect("an unknown key is a fault");
        let (_, known) = told.1.split_once("known are ").expect("it says which are known");
        let shown = shown(from, line);
        for key in known.split(", ") {
            assert!(shown.contains(&key), "{key} is not in the example, where {line} is shown");
        }
    }

    /// What this build has is known, and nothing else: what it leaves out is told from what nobody has.
    #[test]
    fn a_kind_that_this_build_leaves_out_is_told_from_one_that_nobody_has() {
        let of = |faults: Vec<SettingFault>| match &faults[..] {
            [fault] if fault.key == "kind" => fault.message.clone(),
            other => panic!("{other:?}"),
        };
        let released = |kind: &str| of(releaser("x", kind, &Map::new()).expect_err(kind));
        let heard = |kind: &str| of(source(kind, &Map::new()).expect_err(kind));
        let (releases, sources) = (released("kubernets"), heard("kubernets"));
        let more = if cfg!(feature = "kubernetes") { ", kubernetes" } else { "" };
        let right = "there is no kind of release \"kubernets\"; known are webhook, command, volumes, none";
        assert_eq!(releases, format!("{right}{more}"));
        let right = "there is no kind of liveness source \"kubernets\"; known are command, http";
        assert_eq!(sources, format!("{right}{more}"));
        #[cfg(not(feature = "kubernetes"))]
        for (told, what, has) in [
            (released("kubernetes"), "kind of release", "webhook, command, volumes, none"),
            (heard("kubernetes"), "kind of liveness source", "command, http"),
        ] {
            let right = format!(
                "the {what} \"kubernetes\" is not in this build of picketd, which has {has}: take one that was built with it"
            );
            assert_eq!(told, right);
        }
    }

    #[test]
    fn the_example_shows_every_key_of_every_driver() {
        let context = Context { clock: Arc::new(SystemClock), random: Arc::new(|_: &mut [u8]| {}) };
        let settings = Map::from_iter([(UNKNOWN.to_owned(), Value::Null)]);
        for kind in kinds(Trial::default()) {
            let faults = kind.make(&settings, &context).expect_err("an unknown key");
            let faults: Vec<_> = faults.into_iter().map(|fault| (fault.key, fault.message)).collect();
            all_shown("", &format!("driver = {:?}", kind.name()), &faults);
        }
        let faults = crate::parent::read(&settings).expect_err("an unknown key");
        let faults: Vec<_> = faults.into_iter().map(|fault| (fault.key, fault.message)).collect();
        all_shown("", "driver = \"parent\"", &faults);
    }

    #[test]
    fn the_example_shows_every_key_of_every_kind_of_release() {
        let settings = Map::from_iter([(UNKNOWN.to_owned(), Value::Null)]);
        for kind in ["webhook", "command", "volumes", "kubernetes"] {
            let faults = releaser("x", kind, &settings).expect_err("an unknown key");
            let own = ["deadline", "settle", "attempt"];
            let faults: Vec<_> = faults
                .into_iter()
                .map(|fault| {
                    // What all of them have is shown once, with the first.
                    let message = match kind {
                        "webhook" => fault.message,
                        _ => {
                            own.iter().fold(fault.message, |text, key| text.replace(&format!(", {key}"), ""))
                        }
                    };
                    (fault.key, message)
                })
                .collect();
            all_shown("[releases.", &format!("kind = {kind:?}"), &faults);
        }
    }
}
