//! What is rehearsed, from a settings file: accounts, groups of machines, and what happens to them.

mod check;
mod raw;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use picket_driver_sim::{Act, Fault};

use crate::bmc::{Bmc, BmcOptions};

pub use raw::What;

/// Checked settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the authority of the BMCs' certificates is written.
    pub ca_file: Option<PathBuf>,
    /// All machines.
    pub bmcs: Vec<BmcOptions>,
    /// What is wrong with them from the beginning.
    pub faults: Vec<(String, Fault)>,
    /// What happens, in the order of time.
    pub events: Vec<Event>,
}

/// Something that happens to some machines.
#[derive(Clone, Debug)]
pub struct Event {
    /// When, since the beginning.
    pub at: Duration,
    /// To which machines.
    pub nodes: Vec<String>,
    /// What.
    pub what: What,
}

/// Everything that is wrong with settings.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct SettingsError(Vec<String>);

impl Settings {
    /// Reads them from the text of a TOML file.
    ///
    /// # Errors
    /// All that is wrong, each with its place and what would be right.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let whole = toml::from_str(text).map_err(|error| SettingsError(vec![error.to_string()]))?;
        check::check(whole).map_err(SettingsError)
    }
}

impl What {
    /// What is wrong with its numbers.
    fn wrong(&self) -> Option<String> {
        match self {
            What::Fault(fault) => fault.wrong(),
            _ => None,
        }
    }

    /// Lets it happen to one BMC.
    pub fn happen_to(&self, bmc: &Bmc) {
        let machine = || bmc.name().to_owned();
        match self {
            What::Fault(fault) => bmc.fault(fault.clone()),
            What::Mend => bmc.mend(),
            What::RestartBmc { down, estranged } => bmc.restart(*down, *estranged),
            What::LoseSessions => bmc.lose_sessions(),
            What::ChangeCertificate => bmc.change_certificate(),
            What::ForeignCycle { off_for } => {
                bmc.happen(Act::ForeignCycle { machine: machine(), off_for: *off_for });
            }
            What::Foreign(verb) => bmc.happen(Act::Foreign { machine: machine(), verb: *verb }),
            What::Watchdog { off_for } => {
                bmc.happen(Act::Watchdog { machine: machine(), off_for: *off_for });
            }
            What::PressButton => bmc.happen(Act::PressButton { machine: machine() }),
            What::LoseMains => bmc.happen(Act::LoseMains { machine: machine() }),
            What::RestoreMains => bmc.happen(Act::RestoreMains { machine: machine() }),
        }
    }
}

#[cfg(test)]
mod tests;
