//! The settings: one TOML file, all faults at once.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use picket_login::Login;
use toml::Table;

use crate::table::SettingsTable;

/// Everything that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where gateways answer, in the order in which they are tried.
    pub endpoints: Vec<String>,
    /// What https wants.
    pub certificates: Option<Certificates>,
    /// In whose name nodes are kept off; empty: the name in the certificate.
    pub holder: String,
    /// How a Node is named to the gateway.
    pub select: Select,
    /// `None`: the service account of the pod in which this runs.
    pub kubeconfig: Option<PathBuf>,
    /// One of it; `None`: its current one.
    pub context: Option<String>,
    /// The program that its user logs in by.
    pub login_program: Option<PathBuf>,
    /// The variables that this gets.
    pub login_env: Vec<String>,
    /// Where the lease stands by which replicas elect one.
    pub lease_namespace: String,
    /// Its name.
    pub lease: String,
    /// The leases by which medik8s' operators say who works on a Node are taken and heard.
    pub medik8s_leases: bool,
    /// Whose annotation kured's lock is.
    pub kured: DaemonSet,
    /// What NodeHealthCheck asks for is done.
    pub remediation: bool,
    /// In these namespaces alone: at least one, where `remediation` is set.
    pub remediation_namespaces: Vec<String>,
    /// This replica.
    pub identity: String,
    /// Where metrics and health are told; `None`: nowhere.
    pub listen: Option<SocketAddr>,
    /// How much is logged.
    pub log: String,
    /// Logs are for machines.
    pub log_json: bool,
}

/// PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The CA of the gateways' certificates.
    pub ca: PathBuf,
    /// The controller's own.
    pub certificate: PathBuf,
    /// Its key, which not everybody may read.
    pub key: PathBuf,
}

/// One of them, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonSet {
    /// Its namespace.
    pub namespace: String,
    /// Its name there.
    pub name: String,
}

impl fmt::Display for DaemonSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl DaemonSet {
    /// Where kured puts itself.
    const USUAL: &str = "kube-system/kured";

    /// Whether somebody said where it is.
    pub fn is_named(&self) -> bool {
        self.to_string() != Self::USUAL
    }

    fn read(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        // A DaemonSet is called by labels with dots between them (RFC 1123), a namespace by one label.
        let is_right = is_object(namespace) && name.len() <= 253 && name.split('.').all(is_object);
        if !is_right {
            return None;
        }
        Some(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

/// How a Node is named to the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Select {
    /// The gateway's node has the Node's name.
    #[default]
    Name,
    /// It has the Node's `spec.providerID`.
    ProviderId,
    /// It has the Node's system UUID.
    SystemUuid,
}

/// Everything that is wrong, a line each: file, key, what was expected.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{}", .0.join("\n"))]
pub struct Faults(pub Vec<String>);

impl Settings {
    /// Reads the file.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once.
    pub fn read(path: &Path, env: impl Fn(&str) -> Option<String>) -> Result<Self, Faults> {
        let shown = path.display();
        // Who writes the settings says which gateway is believed, and which nodes it is asked to switch off.
        picket_permissions::check_if_there(path)
            .map_err(|fault| Faults(vec![format!("{shown}: {fault}")]))?;
        let text =
            std::fs::read_to_string(path).map_err(|error| Faults(vec![format!("{shown}: {error}")]))?;
        Self::parse(&text, env).map_err(|Faults(faults)| {
            Faults(faults.into_iter().map(|fault| format!("{shown}: {fault}")).collect())
        })
    }

    /// How the API server is reached.
    pub fn login(&self) -> Login {
        let (kubeconfig, context) = (self.kubeconfig.clone(), self.context.clone());
        Login::new(kubeconfig, context, self.login_program.clone(), self.login_env.clone())
    }

    fn parse(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Self, Faults> {
        let mut whole: Table = toml::from_str(text).map_err(|error| Faults(vec![error.to_string()]))?;
        let mut faults = Vec::new();

        let mut gateway = SettingsTable::of(&mut whole, "gateway", &mut faults);
        let endpoints = gateway.texts("endpoints");
        if endpoints.is_empty() {
            gateway.fault(
                "endpoints",
                "needed, for example [\"https://gateway-1:7070\", \"https://gateway-2:7070\"]",
            );
        }
        for endpoint in &endpoints {
            if let Some(why) = crate::gateway::wrong(endpoint) {
                gateway.fault("endpoints", &why);
            }
        }
        let files = ["ca_file", "cert_file", "key_file"].map(|key| (key, gateway.path(key)));
        let wanted = endpoints.iter().any(|one| one.starts_with("https://"));
        let certificates = match files {
            [(_, Some(ca)), (_, Some(certificate)), (_, Some(key))] => {
                Some(Certificates { ca, certificate, key })
            }
            ref files => {
                let given = files.iter().any(|(_, file)| file.is_some());
                for (key, file) in files {
                    if file.is_none() && (wanted || given) {
                        gateway.fault(
                            key,
                            "needed: https has certificates on both sides (picket pki init makes some)",
                        );
                    }
                }
                None
            }
        };
        let holder = gateway.text("holder").unwrap_or_default();
        let words = [
            ("name", Select::Name),
            ("provider-id", Select::ProviderId),
            ("system-uuid", Select::SystemUuid),
        ];
        let select = gateway.word("select", &words, Select::Name);
        gateway.finish();

        let mut kubernetes = SettingsTable::of(&mut whole, "kubernetes", &mut faults);
        let kubeconfig = kubernetes.path("kubeconfig");
        let context = kubernetes.text("context");
        if context.is_some() && kubeconfig.is_none() {
            kubernetes.fault("context", "is one of a kubeconfig, and none is named");
        }
        let login_program = kubernetes.path("login_program");
        if login_program.is_some() && kubeconfig.is_none() {
            kubernetes.fault("login_program", "is one of a kubeconfig, and none is named");
        }
        let login_env = kubernetes.texts("login_env");
        let mut object = |key: &str, default: &str| {
            let name = kubernetes.text(key).unwrap_or_else(|| default.to_owned());
            if !is_object(&name) {
                kubernetes.fault(
                    key,
                    &format!("expected a name of small letters, digits and hyphens, found {name:?}"),
                );
            }
            name
        };
        let lease_namespace = object("lease_namespace", "picket");
        let lease = object("lease", "picket-controller");
        let medik8s_leases = kubernetes.flag("medik8s_leases", true);
        let text = kubernetes.text("kured").unwrap_or_else(|| DaemonSet::USUAL.to_owned());
        let kured = DaemonSet::read(&text).unwrap_or_else(|| {
            kubernetes.fault("kured", &format!("expected NAMESPACE/NAME of its DaemonSet, found {text:?}"));
            DaemonSet { namespace: String::new(), name: String::new() }
        });
        kubernetes.finish();

        let mut own = SettingsTable::of(&mut whole, "controller", &mut faults);
        let identity = own.text("identity").or_else(|| env("POD_NAME")).or_else(|| env("HOSTNAME"));
        let identity = identity.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        let listen = own.text("listen").and_then(|text| {
            let read = text.parse().ok();
            if read.is_none() {
                own.fault(
                    "listen",
                    &format!("expected an address and a port, for example 0.0.0.0:7075, found {text:?}"),
                );
            }
            read
        });
        let remediation = own.flag("remediation", false);
        let remediation_namespaces = own.texts("remediation_namespaces");
        if let Some(wrong) = remediation_namespaces.iter().find(|name| !is_object(name)) {
            own.fault("remediation_namespaces", &format!("expected names of namespaces, found {wrong:?}"));
        }
        match (remediation, remediation_namespaces.is_empty()) {
            (true, true) => own.fault(
                "remediation_namespaces",
                "needed with remediation = true: the namespaces whose remediations count, for example [\"medik8s\"]; whoever may make one \
                 there has a Node fenced",
            ),
            (false, false) => own.fault("remediation_namespaces", "is of no use without remediation = true"),
            _ => {}
        }
        let log = own.text("log").unwrap_or_else(|| "info".to_owned());
        let log_json = own.word("log_format", &[("text", false), ("json", true)], false);
        own.finish();

        for key in whole.keys() {
            faults
                .push(format!("{key}: there is no such table; there are gateway, kubernetes and controller"));
        }
        let settings = Self {
            endpoints,
            certificates,
            holder,
            select,
            kubeconfig,
            context,
            login_program,
            login_env,
            lease_namespace,
            lease,
            medik8s_leases,
            kured,
            remediation,
            remediation_namespaces,
            identity,
            listen,
            log,
            log_json,
        };
        if faults.is_empty() { Ok(settings) } else { Err(Faults(faults)) }
    }
}

fn is_object(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends = [name.bytes().next(), name.bytes().last()];
    !name.is_empty() && name.len() <= 63 && name.bytes().all(plain) && !ends.contains(&Some(b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, Faults> {
        Settings::parse(text, |_| None)
    }

    #[test]
    fn settings_that_somebody_else_may_write_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("controller.toml");
        std::fs::write(&path, "[gateway]\nendpoints = [\"http://127.0.0.1:1\"]\n").expect("written");
        for (at, open, closed) in [(&*path, 0o666, 0o644), (home.path(), 0o777, 0o700)] {
            let mode = |mode| std::fs::set_permissions(at, std::fs::Permissions::from_mode(mode));
            mode(open).expect("it is ours");
            let Faults(told) = Settings::read(&path, |_| None).expect_err("everybody may change it");
            let right = format!("run chmod o-w {}", at.display());
            assert!(told.len() == 1 && told[0].ends_with(&right), "{told:?}");
            mode(closed).expect("it is ours");
        }
        assert!(Settings::read(&path, |_| None).is_ok());
    }

    #[test]
    fn the_least_is_where_a_gateway_answers_and_by_which_certificates() {
        let certificates = "ca_file = \"/p/ca.pem\"\ncert_file = \"/p/c.pem\"\nkey_file = \"/p/c.key\"\n";
        let text = format!("[gateway]\nendpoints = [\"https://g:7070\"]\n{certificates}");
        let settings = parse(&text).expect("it is right");
        assert_eq!((settings.select, settings.lease_namespace.as_str()), (Select::Name, "picket"));
        assert!(
            settings.certificates.is_some() && settings.kubeconfig.is_none() && settings.listen.is_none()
        );
        assert!(settings.medik8s_leases && !settings.remediation);
        assert_eq!(DaemonSet::read("kube-system/kured"), Some(settings.kured));
        for wrong in ["kured", "/kured", "a/", "a.b/kured", "a/-kured", "a/b/c", "A/kured"] {
            assert_eq!(DaemonSet::read(wrong), None, "{wrong}");
        }
        let elsewhere =
            parse(&format!("{text}[kubernetes]\nkured = \"kured/reboots.weekly\"\n")).expect("it is right");
        assert_eq!(
            (elsewhere.kured.namespace.as_str(), elsewhere.kured.name.as_str()),
            ("kured", "reboots.weekly")
        );
        assert!(elsewhere.kured.is_named());
        // The namespaces whose remediations count are named (K12).
        let wanted =
            |namespaces: &str| parse(&format!("{text}[controller]\nremediation = true\n{namespaces}"));
        let Faults(faults) = wanted("").expect_err("of which namespaces");
        assert!(
            faults.len() == 1 && faults[0].starts_with("controller.remediation_namespaces: needed"),
            "{faults:?}"
        );
        let settings = wanted("remediation_namespaces = [\"medik8s\"]\n").expect("it is right");
        assert_eq!(settings.remediation_namespaces, ["medik8s"]);
        let settings = Settings::parse(&text, |name| (name == "POD_NAME").then(|| "controller-7".to_owned()));
        assert_eq!(settings.expect("it is right").identity, "controller-7");
    }

    #[test]
    fn all_faults_are_told_at_once_by_their_keys() {
        let text = "[gateway]\nendpoints = [\"https://g:7070\", \"g2\"]\nca_file = \"ca.pem\"\nselect = \"hope\"\ncolour = 1\n\
                    [kubernetes]\ncontext = \"c\"\nlogin_program = \"aws\"\nlogin_env = \"HOME\"\nlease_namespace = \"My Own\"\nkured = \"kured\"\n[controller]\nlisten = \"here\"\nremediation = 1\nremediation_namespaces = [\"ops\"]\n[more]\n";
        let Faults(faults) = parse(text).expect_err("nearly all is wrong");
        let keys: Vec<&str> = faults.iter().filter_map(|fault| fault.split(':').next()).collect();
        assert_eq!(
            keys,
            [
                "gateway.endpoints",
                "gateway.ca_file",
                "gateway.cert_file",
                "gateway.key_file",
                "gateway.select",
                "gateway.colour",
                "kubernetes.context",
                "kubernetes.login_program",
                "kubernetes.login_program",
                "kubernetes.login_env",
                "kubernetes.lease_namespace",
                "kubernetes.kured",
                "controller.listen",
                "controller.remediation",
                "controller.remediation_namespaces",
                "more"
            ]
        );
        assert!(parse("").expect_err("no gateway").to_string().contains("gateway.endpoints: needed"));
    }
}
