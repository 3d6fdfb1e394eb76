//! The rows of the tables, and the one way to walk them.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt, stream};
use picket_driver::DriverError;
use picket_driver_sim::Fault;
use serde_json::{Value, json};

use crate::fence::{Came, fence};
use crate::scene::{Over, Scene};

/// How the fence of a machine ends whose BMC has that fault.
#[derive(Clone, Copy, Debug)]
pub enum Ends {
    /// Off in truth and in words; an off that is repeated is taken as well.
    Off,
    /// The same, and the repeat is refused in these words, as the board's own answer.
    OffOnce(&'static str),
    /// It runs on, and the last words of the driver are these.
    On(&'static str),
    /// It is off, and its driver never says so, but these words.
    Unproven(&'static str),
    /// It runs on, and its driver says Off: no other device is asked here.
    Lied,
}

/// When the fault begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Before anybody asks.
    Start,
    /// Once the machine was asked who it is, and its power was read.
    FirstReading,
    /// At the same moment, in which all sessions are lost.
    LossOfSessions,
}

/// What a client believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Believes {
    /// The authority of the fleet.
    Authority,
    /// The board's own certificate in a file.
    Itself,
    /// The SHA-256 of that certificate.
    Digest,
}

/// One fault, and how a fence ends by it.
#[derive(Clone, Debug)]
pub struct Row {
    /// As it stands in the settings of a fleet.
    pub fault: Value,
    pub since: Since,
    pub believes: Believes,
    /// Settings of the device, over those of its table.
    pub more: Value,
    /// How long a call lasts: where it is no more than waited for to its end, it is short.
    pub call: Duration,
    pub ends: Ends,
    /// The hold in words; `None`: as the table has it.
    pub holds: Option<&'static str>,
    /// Sessions stay open at the board that nobody can end.
    pub leaves: bool,
    /// The words with which an on has to wait; none: it has not.
    pub waits: &'static str,
    /// A remark that is told of the board.
    pub remark: &'static str,
}

/// How long a call lasts that is answered.
pub const LONG: Duration = Duration::from_secs(60);

/// A fault, and how a fence ends by it.
pub fn row(fault: Value, ends: Ends) -> Row {
    // A refused command is sent again after 1, 2 and 4 s: the last answer has as long again to come, and one more pause would not fit.
    let call = if matches!(ends, Ends::On(_) | Ends::OffOnce(_)) { Duration::from_secs(14) } else { LONG };
    Row {
        fault,
        since: Since::Start,
        believes: Believes::Authority,
        more: json!({}),
        call,
        ends,
        holds: None,
        leaves: false,
        waits: "",
        remark: "",
    }
}

impl Ends {
    /// A reading says Off sooner or later.
    pub fn says_off(self) -> bool {
        matches!(self, Self::Off | Self::OffOnce(_) | Self::Lied)
    }
}

impl Row {
    pub fn since(self, since: Since) -> Self {
        Self { since, ..self }
    }

    pub fn believing(self, believes: Believes) -> Self {
        Self { believes, ..self }
    }

    pub fn with(self, more: Value) -> Self {
        Self { more, ..self }
    }

    pub fn holds(self, holds: &'static str) -> Self {
        Self { holds: Some(holds), ..self }
    }

    pub fn remarked(self, remark: &'static str) -> Self {
        Self { remark, ..self }
    }

    pub fn waiting(self, waits: &'static str) -> Self {
        Self { waits, ..self }
    }

    pub fn leaving_sessions(self) -> Self {
        Self { leaves: true, ..self }
    }

    /// Some of its calls are waited for to their ends: these are short.
    pub fn in_vain(self) -> Self {
        Self { call: Duration::from_secs(6), ..self }
    }

    /// Something of the machine is held: what holds it answers.
    pub fn is_held(&self) -> bool {
        self.holds != Some("")
    }

    /// These words are what the row is about.
    pub fn is_told(&self, error: &DriverError) -> bool {
        let words = match self.ends {
            Ends::OffOnce(words) | Ends::On(words) | Ends::Unproven(words) => words,
            Ends::Off | Ends::Lied => self.waits,
        };
        !words.is_empty() && error.to_string().contains(words)
    }

    /// The name of the fault.
    fn name(&self) -> String {
        let key = self.fault.as_object().and_then(|table| table.keys().next().cloned());
        key.or_else(|| self.fault.as_str().map(str::to_owned)).expect("a fault")
    }

    fn judge(&self, usual: &str, came: &Came) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{}: {what}: {came:#?}", self.fault));
        let has = |words: &str| came.last.contains(words);
        let right = match self.ends {
            Ends::Off => !came.is_on && came.says_off && came.again == Some(Ok(())),
            Ends::OffOnce(words) => {
                let refused = matches!(&came.again, Some(Err(said)) if said.contains(words));
                !came.is_on && came.says_off && refused
            }
            Ends::On(words) => came.is_on && !came.says_off && has(words),
            Ends::Unproven(words) => !came.is_on && !came.says_off && has(words),
            Ends::Lied => came.is_on && came.says_off,
        };
        if !right {
            return wrong("it ends otherwise");
        }
        if matches!(self.ends, Ends::Off | Ends::OffOnce(_)) {
            if came.holds != self.holds.unwrap_or(usual) {
                return wrong("it is held otherwise");
            }
            match &came.left {
                None if !self.waits.is_empty() => return wrong("it comes on at once"),
                Some(left) if self.waits.is_empty() || !left.contains(self.waits) => return wrong(left),
                _ => {}
            }
        }
        if came.remarks.iter().any(|told| told.contains(self.remark)) || self.remark.is_empty() {
            return Ok(());
        }
        wrong("that is not remarked")
    }
}

/// Walks all rows, a few at a time, and tells all that end otherwise.
pub async fn walk(over: Over, usual: &str, rows: Vec<Row>) {
    let ended = stream::iter(rows).map(|row| async move {
        let fault: Fault = serde_json::from_value(row.fault.clone()).expect("it is one");
        let scene = Scene::start(over, fault, &row).await;
        let came = fence(&scene, &row).await;
        row.judge(usual, &came)
    });
    let wrong: Vec<String> =
        ended.buffer_unordered(8).filter_map(|ended| async { ended.err() }).collect().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The names of the faults in docs/rehearse-settings.md.
fn told() -> BTreeSet<String> {
    let text = include_str!("../../../../docs/rehearse-settings.md");
    let (_, text) = text.split_once("## Faults").expect("they have a heading");
    let (text, _) = text.split_once("## What happens").expect("it follows");
    let cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let bare = |name: &str| {
        let name = name.trim_start_matches("{ ");
        name.split([' ', '=']).next().unwrap_or_default().to_owned()
    };
    names.map(bare).collect()
}

#[test]
fn each_fault_that_is_told_of_meets_a_driver() {
    let rows = crate::redfish::rows().into_iter().chain(crate::ipmi::rows());
    let met: BTreeSet<String> = rows.map(|row| row.name()).collect();
    assert_eq!(met, told());
}
