//! The options: one table for the command line, for standard input and for the metadata.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use picket_proto::v1::{FenceUntil, Grade};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    On,
    Off,
    Reboot,
    Status,
    Monitor,
    List,
    ListStatus,
    ValidateAll,
    Metadata,
    Help,
    Version,
}

/// What a value is, in the metadata's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    String,
    Second,
    Boolean,
    Select(&'static [&'static str]),
}

/// One option.
#[derive(Debug)]
pub(super) struct Parameter {
    /// As it is written on standard input.
    pub(super) name: &'static str,
    /// One letter of the command line.
    pub(super) short: Option<char>,
    pub(super) kind: ValueKind,
    pub(super) default: Option<&'static str>,
    /// Which action does not go without it.
    pub(super) required: bool,
    pub(super) about: &'static str,
}

/// Actions by the names that callers use.
const ACTIONS: &[(&str, Action)] = &[
    ("on", Action::On),
    ("off", Action::Off),
    ("reboot", Action::Reboot),
    ("status", Action::Status),
    ("monitor", Action::Monitor),
    ("list", Action::List),
    ("list-status", Action::ListStatus),
    ("validate-all", Action::ValidateAll),
    ("metadata", Action::Metadata),
    ("meta-data", Action::Metadata),
];

const GRADES: &[&str] = &["attested", "claimed", "learned", "hypervisor", "observed"];

const fn parameter(
    name: &'static str,
    short: Option<char>,
    kind: ValueKind,
    about: &'static str,
) -> Parameter {
    Parameter { name, short, kind, default: None, required: false, about }
}

/// All of them, in the order in which they are told.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        default: Some("reboot"),
        required: true,
        ..parameter("action", Some('o'), ValueKind::String, "Fencing action")
    },
    parameter("plug", Some('n'), ValueKind::String, "The node, by its name in the gateway's settings"),
    parameter("port", None, ValueKind::String, "The same as plug, by its older name"),
    parameter(
        "nodename",
        None,
        ValueKind::String,
        "The node by its name in the cluster: where no plug is given",
    ),
    parameter(
        "endpoint",
        Some('a'),
        ValueKind::String,
        "Where gateways answer: unix:/run/picket/picket.sock, https://gateway:7070; several are separated by commas",
    ),
    parameter("context", None, ValueKind::String, "Which context of the file with contexts"),
    parameter("config", None, ValueKind::String, "The file with contexts"),
    parameter("ca_file", None, ValueKind::String, "The CA of the gateways' certificates, a PEM file"),
    parameter("cert_file", None, ValueKind::String, "The certificate that is shown to them, a PEM file"),
    parameter("key_file", None, ValueKind::String, "Its key, a PEM file"),
    Parameter {
        default: Some("fence_picket"),
        ..parameter(
            "holder",
            None,
            ValueKind::String,
            "The hold that keeps the node off, and that 'on' drops",
        )
    },
    parameter("reason", None, ValueKind::String, "Why; stands in the hold and in the history"),
    Parameter {
        default: Some("released"),
        ..parameter(
            "until",
            None,
            ValueKind::Select(&["released", "confirmed"]),
            "When 'off' and 'reboot' are done: when the node is proven off and its volumes are released, or when it is proven off",
        )
    },
    parameter("minimum_grade", None, ValueKind::Select(GRADES), "The least grade of evidence that will do"),
    Parameter {
        default: Some("0"),
        ..parameter(
            "delay",
            None,
            ValueKind::Second,
            "Wait so long before fencing is asked for: where two nodes may shoot each other",
        )
    },
    parameter(
        "timeout",
        None,
        ValueKind::Second,
        "Give up after so long; what was begun goes on. By default whoever calls has the time",
    ),
    Parameter {
        default: Some(","),
        ..parameter(
            "separator",
            Some('C'),
            ValueKind::String,
            "Between the columns of 'list' and 'list-status'",
        )
    },
    parameter("quiet", Some('q'), ValueKind::Boolean, "Say nothing where all went well"),
    parameter(
        "verbose",
        Some('v'),
        ValueKind::Boolean,
        "Taken, and without effect: each step is told anyway",
    ),
    parameter("version", Some('V'), ValueKind::Boolean, "Tell the version"),
    parameter("help", Some('h'), ValueKind::Boolean, "Tell the options"),
];

/// What was asked for, read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) action: Action,
    pub(super) plug: Option<String>,
    pub(super) endpoint: Option<String>,
    pub(super) context: Option<String>,
    pub(super) config: Option<PathBuf>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) cert_file: Option<PathBuf>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) holder: String,
    pub(super) reason: Option<String>,
    pub(super) until: FenceUntil,
    pub(super) minimum_grade: Option<Grade>,
    pub(super) delay: Duration,
    pub(super) timeout: Option<Duration>,
    pub(super) separator: String,
    pub(super) quiet: bool,
}

type Values = BTreeMap<&'static str, String>;

fn known(name: &str) -> Option<&'static Parameter> {
    let name = name.replace('-', "_");
    PARAMETERS.iter().find(|parameter| parameter.name == name)
}

/// As it is written on the command line.
pub(super) fn long(parameter: &Parameter) -> String {
    parameter.name.replace('_', "-")
}

impl Options {
    /// From the command line: `-o off`, `-ooff`, `--action off`, `--action=off`.
    pub(super) fn of_arguments(arguments: &[String]) -> Result<Self, String> {
        let mut values = Values::new();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let (parameter, mut value) = match word.strip_prefix("--") {
                Some(long) => {
                    let (name, value) = match long.split_once('=') {
                        Some((name, value)) => (name, Some(value.to_owned())),
                        None => (long, None),
                    };
                    (known(name), value)
                }
                None => {
                    let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
                    let letter = letters.next();
                    let found = PARAMETERS.iter().find(|one| one.short.is_some() && one.short == letter);
                    let value = letters.as_str();
                    (found, (!value.is_empty()).then(|| value.to_owned()))
                }
            };
            let Some(parameter) = parameter else {
                return Err(format!("no such option: {word}; --help tells those that there are"));
            };
            if parameter.kind == ValueKind::Boolean {
                value = value.or_else(|| Some("1".to_owned()));
            }
            let value = value.or_else(|| rest.next().cloned());
            let value = value.ok_or_else(|| format!("the option {word} wants a value"))?;
            values.insert(parameter.name, value);
        }
        Self::of_values(&values)
    }

    /// From standard input; also the names that nobody knows, which the interface wants left out rather than refused.
    pub(super) fn of_lines(text: &str) -> Result<(Self, Vec<String>), String> {
        let (mut values, mut ignored) = (Values::new(), Vec::new());
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            // What an operation is called is "option" in the oldest callers.
            let (name, value) = line.split_once('=').unwrap_or((line, "1"));
            let (name, value) = (name.trim(), value.trim());
            match known(if name == "option" { "action" } else { name }) {
                Some(parameter) => {
                    values.insert(parameter.name, value.to_owned());
                }
                None => ignored.push(name.to_owned()),
            }
        }
        Ok((Self::of_values(&values)?, ignored))
    }

    fn of_values(values: &Values) -> Result<Self, String> {
        let given = |name: &str| values.get(name).filter(|value| !value.is_empty());
        let text = |name: &str| given(name).cloned();
        let path = |name: &str| given(name).map(PathBuf::from);
        let or_default = |name: &str| {
            let default = PARAMETERS.iter().find(|one| one.name == name).and_then(|one| one.default);
            text(name).unwrap_or_else(|| default.unwrap_or_default().to_owned())
        };
        let is_set = |name: &str| -> Result<bool, String> {
            match text(name).map(|value| value.to_lowercase()).as_deref() {
                None | Some("0" | "no" | "off" | "false") => Ok(false),
                Some("1" | "yes" | "on" | "true") => Ok(true),
                Some(other) => Err(format!("{name}: {other:?} is neither yes nor no")),
            }
        };
        let seconds = |name: &str| -> Result<Option<Duration>, String> {
            let Some(value) = given(name) else { return Ok(None) };
            let bad = || format!("{name}: {value:?} is no number of seconds (0 to 86400)");
            let number = value.strip_suffix('s').unwrap_or(value).parse::<f64>().map_err(|_| bad())?;
            if (0.0..=86_400.0).contains(&number) {
                Ok(Some(Duration::from_secs_f64(number)))
            } else {
                Err(bad())
            }
        };
        let action = if is_set("help")? {
            Action::Help
        } else if is_set("version")? {
            Action::Version
        } else {
            let name = or_default("action").to_lowercase();
            let found = ACTIONS.iter().find(|(known, _)| *known == name).map(|(_, action)| *action);
            let names = || ACTIONS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            found.ok_or_else(|| format!("no such action: {name:?}; there are {}", names()))?
        };
        let until = match or_default("until").as_str() {
            "released" => FenceUntil::Released,
            "confirmed" => FenceUntil::Confirmed,
            other => return Err(format!("until: {other:?} is neither released nor confirmed")),
        };
        let minimum_grade = match given("minimum_grade").map(String::as_str) {
            None => None,
            Some("attested") => Some(Grade::Attested),
            Some("claimed") => Some(Grade::Claimed),
            Some("learned") => Some(Grade::Learned),
            Some("hypervisor") => Some(Grade::Hypervisor),
            Some("observed") => Some(Grade::Observed),
            Some(other) => {
                return Err(format!("minimum_grade: {other:?} is none of {}", GRADES.join(", ")));
            }
        };
        Ok(Self {
            action,
            plug: text("plug").or_else(|| text("port")).or_else(|| text("nodename")),
            endpoint: text("endpoint"),
            context: text("context"),
            config: path("config"),
            ca_file: path("ca_file"),
            cert_file: path("cert_file"),
            key_file: path("key_file"),
            holder: or_default("holder"),
            reason: text("reason"),
            until,
            minimum_grade,
            delay: seconds("delay")?.unwrap_or_default(),
            timeout: seconds("timeout")?,
            separator: or_default("separator"),
            quiet: is_set("quiet")?,
        })
    }

    /// Whether all is there that the action wants.
    pub(super) fn complete(&self) -> Result<(), String> {
        let of_a_node = matches!(self.action, Action::On | Action::Off | Action::Reboot | Action::Status);
        if of_a_node && self.plug.is_none() {
            return Err("which node? give plug=NAME (on the command line: -n NAME)".to_owned());
        }
        Ok(())
    }
}

/// What `--help` says.
pub(super) fn help() -> String {
    let mut text = "fence_picket: fences nodes through a Picket gateway, which proves that they are off\n\n\
        Options on the command line, or without any as key=value lines on standard input (names with _ for -):\n\n"
        .to_owned();
    for parameter in PARAMETERS {
        let short = parameter.short.map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
        let default = parameter.default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
        text += &format!("  {short}--{:<15} {}{default}\n", long(parameter), parameter.about);
    }
    let names: Vec<&str> = ACTIONS.iter().map(|(name, _)| *name).collect();
    text += &format!("\nActions: {}\n", names.join(", "));
    text += "Exit codes: 0 done (status: on), 1 failed, 2 status: off\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Options, String> {
        Options::of_arguments(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_command_line_is_read_as_other_agents_read_theirs() {
        for line in
            ["-o off -n r1n07", "-ooff -nr1n07", "--action=off --plug=r1n07", "--action off --plug r1n07"]
        {
            let options = words(line).expect(line);
            assert_eq!((options.action, options.plug.as_deref()), (Action::Off, Some("r1n07")), "{line}");
        }
        assert_eq!(words("-n a").expect("the default").action, Action::Reboot);
        assert_eq!(words("-h").expect("help").action, Action::Help);
        assert!(words("--colour blue").expect_err("unknown").contains("no such option: --colour"));
        assert!(words("-o").expect_err("cut off").contains("wants a value"));
        assert!(words("-o explode").expect_err("unknown").contains("there are on, off, reboot"));
    }

    #[test]
    fn standard_input_is_read_and_what_nobody_knows_is_left_out() {
        let text = "# from stonith\naction=off\n\nnodename=db1\nplug=r1n07\nverbose\ncrm_feature_set=3.17\nca-file=/ca.pem\n";
        let (options, ignored) = Options::of_lines(text).expect("read");
        assert_eq!(options.plug.as_deref(), Some("r1n07"), "the plug counts before the cluster's name");
        assert_eq!(options.ca_file, Some(PathBuf::from("/ca.pem")));
        assert_eq!(ignored, ["crm_feature_set"]);
        let (options, _) = Options::of_lines("option=status\nnodename=db1\n").expect("read");
        assert_eq!((options.action, options.plug.as_deref()), (Action::Status, Some("db1")));
    }

    /// A role that does not list the hold of the agent has every fence refused.
    #[test]
    fn the_role_in_the_page_lists_the_hold_that_is_asked_for() {
        let holder = words("-o off -n r1n07").expect("read").holder;
        let page = include_str!("../../../../docs/pacemaker.md");
        assert!(page.contains(&format!("holders = [{holder:?}]")), "{holder}");
    }

    #[test]
    fn wrong_values_are_told_with_their_names() {
        for (line, wanted) in [
            ("--delay soon", "delay"),
            ("--delay -1", "delay"),
            ("--timeout inf", "timeout"),
            ("--until someday", "until"),
            ("--minimum-grade best", "minimum_grade"),
            ("--quiet=maybe", "quiet"),
        ] {
            let error = words(line).expect_err(line);
            assert!(error.starts_with(wanted), "{line}: {error}");
        }
        assert!(words("-o off").expect("read").complete().expect_err("no node").contains("plug=NAME"));
        words("-o monitor").expect("read").complete().expect("of the whole gateway");
    }
}
