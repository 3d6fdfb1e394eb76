//! Settings of a gateway over simulated BMCs.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use crate::peers::{ADMIN, OPERATOR, PASSWORD, Sushy};

/// The variable in which the simulated BMCs' password stands, for the daemon alone.
pub const PASSWORD_VARIABLE: &str = "PICKET_TEST_BMC_PASSWORD";

/// A BMC as a node's device.
#[derive(Clone, Debug)]
pub struct Bmc {
    driver: &'static str,
    address: SocketAddr,
    user: String,
    password: String,
    more: String,
}

impl Bmc {
    /// By the account that may switch power and no more, with suites 17 and 3.
    pub fn at(address: SocketAddr) -> Self {
        let (user, password) = (OPERATOR.to_owned(), PASSWORD_VARIABLE.to_owned());
        Self { driver: "ipmi", address, user, password, more: "cipher_suites = [17, 3]\n".to_owned() }
    }

    /// One of ipmi_sim's, which ends a silent session after 30 s: half of what IPMI 2.0 says, and settings take for granted.
    pub fn simulated(address: SocketAddr) -> Self {
        Self::at(address).with("idle_limit = \"30s\"")
    }

    /// A system of sushy's, by name and password.
    pub fn redfish(sushy: &Sushy, system: &str) -> Self {
        Self::redfish_in_sessions(sushy, system).with("authentication = \"basic\"")
    }

    /// The same in sessions, as the layer before the emulator has them.
    pub fn redfish_in_sessions(sushy: &Sushy, system: &str) -> Self {
        let lines = format!("system = {system:?}");
        Self::redfish_at(sushy.address()).with(&lines).trusting(&sushy.ca_file())
    }

    /// The only system of a Redfish service, in sessions.
    pub fn redfish_at(address: SocketAddr) -> Self {
        let (user, password) = (ADMIN.to_owned(), PASSWORD_VARIABLE.to_owned());
        Self { driver: "redfish", address, user, password, more: String::new() }
    }

    /// Believed by this CA.
    #[must_use]
    pub fn trusting(mut self, ca: &Path) -> Self {
        let kept = self.more.lines().filter(|line| !line.starts_with("ca_file"));
        self.more = kept.map(|line| format!("{line}\n")).collect();
        self.with(&format!("ca_file = {ca:?}"))
    }

    /// As somebody else.
    #[must_use]
    pub fn user(self, user: &str) -> Self {
        Self { user: user.to_owned(), ..self }
    }

    /// With the password in another variable of the daemon's environment.
    #[must_use]
    pub fn password_in(self, variable: &str) -> Self {
        Self { password: variable.to_owned(), ..self }
    }

    /// Its table as a device of that node.
    pub fn device(&self, node: &str, device: &str) -> String {
        let (host, port) = (self.address.ip(), self.address.port());
        format!(
            "[nodes.{node:?}.devices.{device:?}]\ndriver = {:?}\nhost = \"{host}\"\nport = {port}\n\
             username = {:?}\npassword_env = {:?}\n{}",
            self.driver, self.user, self.password, self.more
        )
    }

    /// With further lines of TOML in the device's table.
    #[must_use]
    pub fn with(mut self, lines: &str) -> Self {
        self.more += lines;
        self.more.push('\n');
        self
    }
}

/// Nodes, releases and whatever else, as TOML. Where the daemon listens and stores is added by [`crate::Gateway`].
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    text: String,
}

impl Fleet {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lines of TOML that stand in no table of a node.
    #[must_use]
    pub fn with(mut self, lines: &str) -> Self {
        let _ = writeln!(self.text, "{lines}");
        self
    }

    /// A node behind one BMC, which lets go by these releases.
    #[must_use]
    pub fn node(self, name: &str, bmc: &Bmc, releases: &[&str]) -> Self {
        self.node_with_levels(name, &[&[("bmc", bmc)]], releases)
    }

    /// A node with these levels, each of named BMCs.
    #[must_use]
    pub fn node_with_levels(mut self, name: &str, levels: &[&[(&str, &Bmc)]], releases: &[&str]) -> Self {
        let names: Vec<Vec<&str>> =
            levels.iter().map(|level| level.iter().map(|(device, _)| *device).collect()).collect();
        // Writing to a string does not fail; {:?} of texts and lists is TOML as well.
        let _ = writeln!(self.text, "[nodes.{name:?}]\nlevels = {names:?}\nreleases = {releases:?}");
        for (device, bmc) in levels.iter().copied().flatten() {
            let _ = writeln!(self.text, "{}", bmc.device(name, device));
        }
        self
    }

    /// A release by webhook, with further lines of TOML.
    #[must_use]
    pub fn webhook(self, name: &str, url: &str, lines: &str) -> Self {
        self.with(&format!("[releases.{name:?}]\nkind = \"webhook\"\nurl = {url:?}\n{lines}"))
    }

    /// The TOML.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The same, for who adds it to other settings.
    pub fn settings(&self) -> String {
        self.text.clone()
    }

    /// The password that [`PASSWORD_VARIABLE`] holds.
    pub fn password() -> &'static str {
        PASSWORD
    }
}
