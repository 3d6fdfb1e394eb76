//! A program of the operator's: where it is, what it is told, and what its environment has.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::settings::Settings;

/// A program with its arguments.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    args: Vec<String>,
    /// What its environment has.
    env: BTreeMap<String, OsString>,
}

/// Without what its environment has: an operator may have put a secret there.
impl std::fmt::Debug for Program {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let env: Vec<&String> = self.env.keys().collect();
        to.debug_struct("Program")
            .field("path", &self.path)
            .field("args", &self.args)
            .field("env", &env)
            .finish()
    }
}

impl Program {
    /// Keys: `program` (an absolute path), `args`, `env` (names of variables that it inherits, besides `PATH`). `example`
    /// shows a program.
    pub fn read(settings: &mut Settings<'_>, example: &str) -> Option<Self> {
        let path = settings.needed("program", example).map(PathBuf::from);
        let args = settings.texts("args");
        if args.iter().any(|arg| arg.contains('\0')) {
            settings.fault("args", "an argument has a zero byte");
        }
        let mut env = BTreeMap::new();
        for name in std::iter::once("PATH".to_owned()).chain(settings.texts("env")) {
            if name.is_empty() || name.contains(['=', '\0']) {
                settings.fault("env", format!("expected names of variables, found {name:?}"));
            } else if let Some(value) = std::env::var_os(&name) {
                env.insert(name, value);
            }
        }
        let path = path?;
        if let Err(why) = check(&path) {
            settings.fault("program", why);
            return None;
        }
        Some(Self { path, args, env })
    }

    /// The program at an absolute path, without arguments. Its environment has `PATH`, and what is named in `env` and there.
    ///
    /// # Errors
    /// Why it cannot be run, in words.
    pub fn at(path: PathBuf, env: &[String]) -> Result<Self, String> {
        check(&path)?;
        let names = std::iter::once("PATH").chain(env.iter().map(String::as_str));
        let env = names.filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?))).collect();
        Ok(Self { path, args: Vec::new(), env })
    }

    /// The same with these arguments.
    #[must_use]
    pub fn with(&self, args: &[&str]) -> Self {
        Self { args: args.iter().map(|arg| (*arg).to_owned()).collect(), ..self.clone() }
    }

    /// The same, each argument as `change` makes it.
    #[must_use]
    pub fn with_args(&self, change: impl Fn(&str) -> String) -> Self {
        Self { args: self.args.iter().map(|arg| change(arg)).collect(), ..self.clone() }
    }

    /// The same, whose environment has these variables besides.
    #[must_use]
    pub fn with_env<'e>(&self, more: impl IntoIterator<Item = (&'e str, &'e str)>) -> Self {
        let mut env = self.env.clone();
        env.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
        Self { env, ..self.clone() }
    }

    /// Where it is, for messages.
    pub fn shown(&self) -> impl std::fmt::Display {
        self.path.display()
    }

    /// One run of it, to be given to [`crate::process::run`].
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.args).env_clear().envs(&self.env).current_dir("/");
        command
    }
}

fn check(program: &Path) -> Result<(), String> {
    let shown = program.display();
    if !program.is_absolute() {
        return Err(format!("{shown} is not an absolute path"));
    }
    let found = std::fs::metadata(program).map_err(|error| format!("{shown} cannot be found: {error}"))?;
    if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
        return Err(format!("{shown} is not a file that may be executed"));
    }
    // It runs as the gateway does, with all that the gateway may do.
    picket_permissions::check(program).map_err(|fault| format!("{shown}: {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_its_environment_has_is_not_shown() {
        let program = Program::at(PathBuf::from("/bin/sh"), &[]).expect("it is there");
        let path = std::env::var("PATH").expect("it is set");
        let shown = format!("{program:?}");
        assert!(shown.contains("PATH") && shown.contains("/bin/sh") && !shown.contains(&path), "{shown}");
    }
}
