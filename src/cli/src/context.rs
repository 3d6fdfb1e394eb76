//! Which gateway: flag, environment, or a context of the settings file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::certificates::Certificates;
use crate::endpoints::Endpoints;
use crate::fault::Fault;
use crate::global::Global;

/// Where a gateway on this machine listens by default.
pub const DEFAULT: &str = "unix:/run/picket/picket.sock";

/// The file with contexts.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The context that counts unless another is named.
    current: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, Context>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    /// Where its gateway answers.
    endpoint: Option<String>,
    /// Where its gateways answer, in the order in which they are tried.
    endpoints: Option<Vec<String>>,
    /// The CA of its gateway's certificate. These three are PEM files, absolute or beside this file, and for https alone.
    ca_file: Option<PathBuf>,
    /// Whose certificate is shown.
    cert_file: Option<PathBuf>,
    /// Its key.
    key_file: Option<PathBuf>,
}

impl Context {
    /// Its certificates, those that were given by other means before them.
    fn certificates(&self, given: &Certificates, file: &Path) -> Certificates {
        let beside = |path: &PathBuf| file.parent().unwrap_or(Path::new("")).join(path);
        let first =
            |given: &Option<PathBuf>, own: &Option<PathBuf>| given.clone().or(own.as_ref().map(beside));
        Certificates {
            ca_file: first(&given.ca_file, &self.ca_file),
            cert_file: first(&given.cert_file, &self.cert_file),
            key_file: first(&given.key_file, &self.key_file),
        }
    }
}

/// The endpoint that counts: the flag, the context by flag, `PICKET_ENDPOINT`, `PICKET_CONTEXT`, `current` of the
/// file, the default; the first that is there.
pub fn endpoint(global: &Global, env: impl Fn(&str) -> Option<String>) -> Result<Endpoints, Fault> {
    let env = |name| env(name).filter(|value| !value.is_empty());
    let with = |text: &str, whence: &str, certificates: &Certificates| {
        let endpoint = Endpoints::parse(text).map_err(|error| Fault::Usage(format!("{whence}: {error}")))?;
        endpoint.with(certificates).map_err(|error| Fault::Usage(format!("{whence}: {error}")))
    };
    let named = |text: &str, whence: &str| with(text, whence, &global.certificates);
    if let Some(text) = &global.endpoint {
        return named(text, "--endpoint");
    }
    if global.context.is_none()
        && let Some(text) = env("PICKET_ENDPOINT")
    {
        return named(&text, "PICKET_ENDPOINT");
    }
    let wanted = global.context.clone().or_else(|| env("PICKET_CONTEXT"));
    let (path, asked_for) = match &global.config {
        Some(path) => (Some(path.clone()), true),
        None => (default_path(&env), false),
    };
    let file = match &path {
        Some(path) => read(path, asked_for).map_err(|fault| match asked_for {
            true => fault,
            false => of_whom(fault, &env),
        })?,
        None => File::default(),
    };
    let path = path.unwrap_or_default();
    let shown = path.display().to_string();
    let Some(name) = wanted.or(file.current) else {
        return named(DEFAULT, "default");
    };
    match file.contexts.get(&name) {
        Some(context) => {
            let certificates = context.certificates(&global.certificates, &path);
            let (key, text) = match (&context.endpoint, &context.endpoints) {
                (Some(one), None) => ("endpoint", one.clone()),
                (None, Some(several)) if !several.is_empty() => ("endpoints", several.join(",")),
                _ => {
                    let wanted =
                        "give endpoint = \"...\", or endpoints = [\"...\", ...] for several gateways";
                    return Err(Fault::Usage(format!("{shown}: contexts.{name}: {wanted}")));
                }
            };
            with(&text, &format!("{shown}: contexts.{name}.{key}"), &certificates)
        }
        None => {
            let known: Vec<_> = file.contexts.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(Fault::Usage(format!("there is no context {name:?} in {shown}; there is: {known}")))
        }
    }
}

fn default_path(env: &impl Fn(&'static str) -> Option<String>) -> Option<PathBuf> {
    let base = env("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| env("HOME").map(|home| Path::new(&home).join(".config")))?;
    Some(base.join("picket/config.toml"))
}

/// A file that nobody named is where the environment says, which may be another user's: after `su` or `setpriv` as a rule.
fn of_whom(fault: Fault, env: &impl Fn(&'static str) -> Option<String>) -> Fault {
    let whence = ["XDG_CONFIG_HOME", "HOME"].into_iter().find_map(|name| Some((name, env(name)?)));
    match (fault, whence) {
        (Fault::Usage(text), Some((name, value))) if text.starts_with(UNREAD) => Fault::Usage(format!(
            "{text}: {name} is {value}, which may be another user's; begin with {name}=YOUR_OWN_HOME, or name a file by --config FILE, or \
             the gateway by --endpoint"
        )),
        (fault, _) => fault,
    }
}

/// How the fault of a file begins that is there and cannot be read.
const UNREAD: &str = "cannot read ";

fn read(path: &Path, asked_for: bool) -> Result<File, Fault> {
    match std::fs::read_to_string(path) {
        // Who writes it says which gateway answers that a node is off.
        Ok(text) => {
            picket_permissions::check(path)
                .map_err(|fault| Fault::Usage(format!("{}: {fault}", path.display())))?;
            toml::from_str(&text).map_err(|error| Fault::Usage(format!("{}: {error}", path.display())))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !asked_for => Ok(File::default()),
        Err(error) => Err(Fault::Usage(format!("{UNREAD}{}: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::Format;

    struct Case {
        endpoint: Option<&'static str>,
        context: Option<&'static str>,
        env: &'static [(&'static str, &'static str)],
        file: &'static str,
    }

    const FILE: &str = "current = \"lab\"\n[contexts.lab]\nendpoint = \"http://127.0.0.1:1\"\n[contexts.prod]\nendpoint = \"unix:/prod\"\n";

    fn check(case: Case) -> Result<String, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let config = dir.path().join("config.toml");
        std::fs::write(&config, case.file).expect("written");
        let global = Global {
            endpoint: case.endpoint.map(str::to_owned),
            context: case.context.map(str::to_owned),
            config: Some(config),
            certificates: Certificates::default(),
            output: Format::Table,
            yes: false,
            timeout: None,
        };
        let env =
            |name: &str| case.env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        endpoint(&global, env).map(|endpoint| endpoint.to_string()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn the_first_that_is_there_counts() {
        let env: &[_] = &[("PICKET_ENDPOINT", "unix:/env"), ("PICKET_CONTEXT", "prod")];
        let flag = Case { endpoint: Some("unix:/flag"), context: None, env, file: FILE };
        assert_eq!(check(flag), Ok("unix:/flag".to_owned()));
        let context = Case { endpoint: None, context: Some("lab"), env, file: FILE };
        assert_eq!(check(context), Ok("http://127.0.0.1:1".to_owned()));
        let by_env = Case { endpoint: None, context: None, env, file: FILE };
        assert_eq!(check(by_env), Ok("unix:/env".to_owned()));
        let by_env = Case { endpoint: None, context: None, env: &env[1..], file: FILE };
        assert_eq!(check(by_env), Ok("unix:/prod".to_owned()));
        let current = Case { endpoint: None, context: None, env: &[], file: FILE };
        assert_eq!(check(current), Ok("http://127.0.0.1:1".to_owned()));
        let none = Case { endpoint: None, context: None, env: &[], file: "" };
        assert_eq!(check(none), Ok(DEFAULT.to_owned()));
    }

    #[test]
    fn https_wants_three_files_which_stand_beside_the_file_with_contexts() {
        let one = |more: &str| format!("current = \"a\"\n[contexts.a]\nendpoint = \"https://g:1\"\n{more}");
        let all = "ca_file = \"ca.pem\"\ncert_file = \"a.pem\"\nkey_file = \"/k/a.key\"\n";
        let ask = |text: String| {
            let file: &'static str = Box::leak(text.into_boxed_str());
            check(Case { endpoint: None, context: None, env: &[], file })
        };
        assert_eq!(ask(one(all)), Ok("https://g:1".to_owned()));
        let missing = ask(one("ca_file = \"ca.pem\"\n")).expect_err("two are missing");
        assert!(missing.contains("cert_file and key_file are missing"), "{missing}");
    }

    #[test]
    fn a_context_has_one_endpoint_or_several() {
        let told = |more: &str| {
            let file: &'static str =
                Box::leak(format!("current = \"a\"\n[contexts.a]\n{more}").into_boxed_str());
            check(Case { endpoint: None, context: None, env: &[], file })
        };
        let several = told("endpoints = [\"unix:/a\", \"unix:/b\"]\n");
        assert_eq!(several, Ok("unix:/a, unix:/b".to_owned()));
        for wrong in ["", "endpoints = []\n", "endpoint = \"unix:/a\"\nendpoints = [\"unix:/b\"]\n"] {
            let fault = told(wrong).expect_err(wrong);
            assert!(fault.contains("contexts.a: give endpoint"), "{fault}");
        }
    }

    #[test]
    fn contexts_that_somebody_else_may_write_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, FILE).expect("written");
        for (at, open, closed) in [(&*path, 0o666, 0o644), (dir.path(), 0o777, 0o700)] {
            let mode = |mode| std::fs::set_permissions(at, std::fs::Permissions::from_mode(mode));
            mode(open).expect("it is ours");
            let told = read(&path, true).expect_err("everybody may change it").to_string();
            assert!(told.ends_with(&format!("run chmod o-w {}", at.display())), "{told}");
            mode(closed).expect("it is ours");
        }
        assert!(read(&path, true).is_ok());
    }

    #[test]
    fn a_home_that_cannot_be_read_is_told_with_the_variable_that_names_it() {
        let dir = tempfile::tempdir().expect("a directory");
        // A directory in the file's place: it cannot be read by root either.
        std::fs::create_dir_all(dir.path().join(".config/picket/config.toml")).expect("made");
        let home = dir.path().display().to_string();
        let global = |config| Global {
            endpoint: None,
            context: None,
            config,
            certificates: Certificates::default(),
            output: Format::Table,
            yes: false,
            timeout: None,
        };
        let told = |config| {
            let env = |name: &str| (name == "HOME").then(|| home.clone());
            endpoint(&global(config), env).expect_err("it cannot be read").to_string()
        };
        let said = told(None);
        assert!(said.contains(&format!("HOME is {home}")) && said.contains("--config FILE"), "{said}");
        let named = told(Some(dir.path().join(".config/picket/config.toml")));
        assert!(!named.contains("HOME"), "{named}");
    }

    #[test]
    fn faults_say_where_and_what_would_be_right() {
        let told = |context, file| check(Case { endpoint: None, context, env: &[], file }).expect_err(file);
        let unknown = told(Some("test"), FILE);
        assert!(
            unknown.contains("no context \"test\"") && unknown.contains("there is: lab, prod"),
            "{unknown}"
        );
        let key = told(None, "[contexts.lab]\nendpont = \"x\"\n");
        assert!(key.contains("config.toml") && key.contains("endpont"), "{key}");
        let bad = told(None, "current = \"lab\"\n[contexts.lab]\nendpoint = \"ftp://x\"\n");
        assert!(bad.contains("contexts.lab.endpoint") && bad.contains("unix:/"), "{bad}");
    }
}
