//! What is wanted: a node, its BMC, and who logs in there.

use std::fmt;
use std::path::PathBuf;

/// What speaks to the BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Driver {
    /// IPMI 2.0 over LAN, UDP 623
    Ipmi,
    /// Redfish over HTTPS, TCP 443
    Redfish,
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Driver::Ipmi => "ipmi",
            Driver::Redfish => "redfish",
        })
    }
}

/// What is wanted, checked as far as it can be without the BMC. It holds a secret, and is not printed.
pub struct NodeRequest {
    /// The node.
    pub node: String,
    /// Where its BMC answers.
    pub address: String,
    /// Who logs in.
    pub user: String,
    /// Where the password is.
    pub password_file: PathBuf,
    /// The password, without the end of its line.
    pub password: Vec<u8>,
    /// It was typed, and is not in the file yet.
    pub is_new: bool,
    /// At another port than the driver's own.
    pub port: Option<u16>,
    /// Also by the weaker suite.
    pub allow_suite_3: bool,
    /// Whom to believe, of Redfish.
    pub ca: Option<PathBuf>,
    /// The certificate's digest, of Redfish.
    pub certificate: Option<String>,
    /// Which system, of Redfish.
    pub system: Option<String>,
}

impl NodeRequest {
    /// The table of the device, but for where its password is. `more`: keys that were found out, which count before what was asked for.
    pub fn device(&self, driver: Driver, more: &[(&'static str, String)]) -> String {
        let mut lines = vec![
            ("driver", toml::Value::from(driver.to_string())),
            ("host", toml::Value::from(self.address.clone())),
            ("username", toml::Value::from(self.user.clone())),
        ];
        lines.extend(self.port.map(|port| ("port", toml::Value::from(i64::from(port)))));
        match driver {
            Driver::Ipmi => {
                let suites = toml::Value::Array(vec![toml::Value::from(17), toml::Value::from(3)]);
                lines.extend(self.allow_suite_3.then_some(("cipher_suites", suites)));
            }
            Driver::Redfish => {
                let ca = self.ca.as_ref().map(|path| path.display().to_string());
                let named = [
                    ("system", self.system.clone()),
                    ("ca_file", ca),
                    ("certificate_sha256", self.certificate.clone()),
                ];
                lines.extend(
                    named.into_iter().filter_map(|(key, value)| Some((key, toml::Value::from(value?)))),
                );
            }
        }
        lines.retain(|(key, _)| more.iter().all(|(other, _)| other != key));
        lines.extend(more.iter().map(|(key, value)| (*key, toml::Value::from(value.clone()))));
        let lines = lines.iter().map(|(key, value)| format!("{key} = {value}\n"));
        format!("[nodes.{:?}.devices.bmc]\n{}", self.node, lines.collect::<String>())
    }
}
