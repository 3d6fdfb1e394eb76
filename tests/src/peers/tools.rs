//! Other people's clients, to look on: ipmitool and FreeIPMI's ipmipower.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use super::{ADMIN, PASSWORD, Place};
use crate::error::{PeerError, Result};

/// What a client says of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerWord {
    /// On.
    On,
    /// Off.
    Off,
}

/// That a program can be found.
pub(super) fn must_have(program: &str, package: &'static str) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    if found { Ok(()) } else { Err(PeerError::Missing { what: program.to_owned(), package }) }
}

async fn run(
    program: &str,
    package: &'static str,
    place: Option<&Place>,
    arguments: &[String],
) -> Result<String> {
    let command = place.map_or_else(|| Command::new(program), |place| place.command(program));
    let output = tokio::process::Command::from(command)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => PeerError::Missing { what: program.to_owned(), package },
            _ => PeerError::Io { what: format!("run {program}"), source },
        })?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let output_text = said + &String::from_utf8_lossy(&output.stderr);
    let program = format!("{program} {}", arguments.join(" "));
    Err(PeerError::Ended { program, status: output.status.to_string(), output: output_text })
}

/// ipmitool against one BMC.
#[derive(Clone, Debug)]
pub struct Ipmitool {
    address: SocketAddr,
    place: Option<Place>,
    suite: u8,
    user: String,
    password: String,
}

impl Ipmitool {
    /// As [`ADMIN`], with cipher suite 3. The suite is always given: without it ipmitool spends ten seconds on asking.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, place: None, suite: 3, user: ADMIN.to_owned(), password: PASSWORD.to_owned() }
    }

    /// On a host of another network, where that BMC is.
    #[must_use]
    pub fn within(self, place: &Place) -> Self {
        Self { place: Some(place.clone()), ..self }
    }

    /// With another cipher suite.
    #[must_use]
    pub fn suite(self, suite: u8) -> Self {
        Self { suite, ..self }
    }

    /// As somebody else.
    #[must_use]
    pub fn login(self, user: &str, password: &str) -> Self {
        Self { user: user.to_owned(), password: password.to_owned(), ..self }
    }

    /// Runs one command (`chassis power status`) and returns what it printed.
    pub async fn run(&self, command: &str) -> Result<String> {
        let (ip, port) = (self.address.ip().to_string(), self.address.port().to_string());
        let suite = self.suite.to_string();
        let login =
            ["-I", "lanplus", "-C", &suite, "-H", &ip, "-p", &port, "-U", &self.user, "-P", &self.password];
        let arguments: Vec<String> =
            login.into_iter().chain(command.split_whitespace()).map(str::to_owned).collect();
        run("ipmitool", "ipmitool", self.place.as_ref(), &arguments).await
    }

    /// `chassis power status`.
    pub async fn power(&self) -> Result<PowerWord> {
        let said = self.run("chassis power status").await?;
        match said.trim() {
            "Chassis Power is on" => Ok(PowerWord::On),
            "Chassis Power is off" => Ok(PowerWord::Off),
            _ => Err(unclear("ipmitool chassis power status", said)),
        }
    }
}

/// ipmipower against one BMC.
#[derive(Clone, Debug)]
pub struct Ipmipower {
    address: SocketAddr,
    suite: u8,
}

impl Ipmipower {
    /// As [`ADMIN`], with cipher suite 3.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, suite: 3 }
    }

    /// With another cipher suite.
    #[must_use]
    pub fn suite(self, suite: u8) -> Self {
        Self { suite, ..self }
    }

    /// Runs it with these options (`--off --wait-until-off`) and returns what it said of the BMC (`ok`, `off`).
    pub async fn run(&self, options: &str) -> Result<String> {
        let (host, suite) = (self.address.to_string(), self.suite.to_string());
        // opensesspriv: ipmi_sim, as some BMCs do, takes the privilege of the Open Session Request only.
        let login =
            ["-D", "LAN_2_0", "-W", "opensesspriv", "-I", &suite, "-h", &host, "-u", ADMIN, "-p", PASSWORD];
        let arguments: Vec<String> =
            login.into_iter().chain(options.split_whitespace()).map(str::to_owned).collect();
        let said = run("ipmipower", "freeipmi-tools", None, &arguments).await?;
        match said.trim().rsplit_once(": ") {
            Some((_host, word)) => Ok(word.to_owned()),
            None => Err(unclear("ipmipower", said)),
        }
    }

    /// `--stat`.
    pub async fn power(&self) -> Result<PowerWord> {
        match self.run("--stat").await?.as_str() {
            "on" => Ok(PowerWord::On),
            "off" => Ok(PowerWord::Off),
            other => Err(unclear("ipmipower --stat", other.to_owned())),
        }
    }
}

fn unclear(program: &str, output: String) -> PeerError {
    PeerError::Ended { program: program.to_owned(), status: "unclear answer".to_owned(), output }
}
