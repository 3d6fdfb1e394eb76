//! Where the settings and the password stand, whose they are, and who may read them.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use picket_permissions::What;
use rustix::process::geteuid;

use super::draft::{Draft, holds};
use crate::fault::Fault;

/// Where `picketd` looks by itself.
pub const DEFAULT: &str = "/etc/picket";
/// The user who runs the gateway, and that user's group, as the package makes them.
const ACCOUNT: &str = "picket";
/// Settings: root writes them, and the gateway reads them.
const SETTINGS: u32 = 0o640;
const SECRET: u32 = 0o600;
/// The package's own settings: a simulated machine, and nothing of anybody's.
const SAMPLE: &str = include_str!("../../../../../deploy/package/picket.toml");

/// The numbers of [`ACCOUNT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    user: u32,
    group: u32,
}

/// A folder for settings.
#[derive(Debug)]
pub struct SettingsFolder {
    directory: PathBuf,
    /// Root gives the files to this account; `None`: they are those of whoever types.
    account: Option<Account>,
    overwrites: bool,
}

impl SettingsFolder {
    /// Looks at the folder; changes nothing.
    ///
    /// # Errors
    /// Settings are there already, or somebody else may change what stands in the folder.
    pub fn of(directory: &Path, overwrites: bool) -> Result<Self, Fault> {
        let wrong =
            |why: &dyn std::fmt::Display| Fault::Usage(format!("--dir {}: {why}", directory.display()));
        let directory = std::path::absolute(directory).map_err(|error| wrong(&error))?;
        if directory.symlink_metadata().is_ok() {
            picket_permissions::check(&directory).map_err(|fault| wrong(&fault))?;
        }
        let is_default = directory == Path::new(DEFAULT);
        // Elsewhere whoever types runs the gateway too.
        let account = if is_default && geteuid().is_root() {
            account(&read("/etc/passwd"), &read("/etc/group"))
        } else {
            None
        };
        let settings_folder = Self { directory, account, overwrites };
        match overwrites
            || settings_folder.file().symlink_metadata().is_err()
            || settings_folder.has_the_sample()
        {
            true => Ok(settings_folder),
            false => Err(taken(&settings_folder.file())),
        }
    }

    /// The settings.
    pub fn file(&self) -> PathBuf {
        self.directory.join("picket.toml")
    }

    /// The password, where no other file is named.
    pub fn password_file(&self) -> PathBuf {
        self.directory.join("bmc.password")
    }

    /// The package's own settings stand there, byte for byte: nobody has touched them.
    fn has_the_sample(&self) -> bool {
        holds(&self.file(), SAMPLE.as_bytes())
    }

    fn is_default(&self) -> bool {
        self.directory == Path::new(DEFAULT)
    }

    /// What the settings say of the place itself: elsewhere than by default socket and store stand beside them.
    pub fn settings(&self) -> String {
        if self.is_default() {
            return String::new();
        }
        let path = |name: &str| toml::Value::from(self.directory.join(name).display().to_string());
        format!("\n[listen]\nunix = {}\n\n[store]\npath = {}\n", path("picket.sock"), path("picket.redb"))
    }

    /// What commands begin with, what `picketd` and what `picket` are given besides.
    pub fn commands(&self) -> (&'static str, String, String) {
        if self.is_default() {
            return ("sudo -u picket ", String::new(), String::new());
        }
        let config = format!(" --config {}", self.file().display());
        ("", config, format!(" --endpoint unix:{}", self.directory.join("picket.sock").display()))
    }

    /// The command that starts the gateway.
    pub fn start(&self) -> String {
        match self.is_default() {
            true => "sudo systemctl enable --now picketd".to_owned(),
            false => format!("picketd --config {} &", self.file().display()),
        }
    }

    /// Writes the settings, and the password that was typed, with its file: each whole or not at all, and both last of all. A file of
    /// a password that is there stays as it is.
    ///
    /// Two files get their names in two calls. A kill between them leaves the password, which the next `picket init` takes.
    ///
    /// # Errors
    /// One of them cannot be written; or some are there by now, and are not to be overwritten. None of them is left.
    pub fn write(&self, text: &str, password: Option<(&Path, &[u8])>) -> Result<(), Fault> {
        let file = self.file();
        let failed = |path: &Path, error: &io::Error| {
            Fault::Failed(format!("{} cannot be written: {error}", path.display()))
        };
        self.make_directory()?;
        let (user, group) =
            (self.account.map(|account| account.user), self.account.map(|account| account.group));
        let secret = match password {
            Some((path, bytes)) => Some((
                path,
                Draft::beside(path, bytes, SECRET, user, group).map_err(|error| failed(path, &error))?,
            )),
            None => None,
        };
        let settings = Draft::beside(&file, text.as_bytes(), SETTINGS, None, group)
            .map_err(|error| failed(&file, &error))?;
        let made = match &secret {
            Some((path, secret)) => {
                secret.name(path).map(|()| Some(*path)).map_err(|error| failed(path, &error))?
            }
            None => None,
        };
        let done = match (self.overwrites, self.has_the_sample()) {
            (true, _) => settings.replace(&file),
            (false, true) => settings.replace_if(&file, SAMPLE.as_bytes(), text.as_bytes()),
            (false, false) => settings.name(&file),
        };
        done.map_err(|error| {
            if let Some(path) = made {
                let _ = std::fs::remove_file(path);
            }
            if error.kind() == io::ErrorKind::AlreadyExists { taken(&file) } else { failed(&file, &error) }
        })
    }

    /// What the file holds, without the end of its line.
    ///
    /// # Errors
    /// It is not there, others may read or change it, the gateway may not read it, or it is empty.
    pub fn secret(&self, path: &Path) -> Result<Vec<u8>, Fault> {
        let wrong = |why: String| Fault::Usage(format!("--password-file {}: {why}", path.display()));
        let bytes = match picket_permissions::read_secret(path) {
            Ok(bytes) => bytes,
            // Root reads what is the gateway's own, and nobody else's.
            Err(fault) if self.is_the_gateways(path, &fault) => {
                std::fs::read(path).map_err(|error| wrong(error.to_string()))?
            }
            Err(fault) => return Err(wrong(self.mended(path, &fault))),
        };
        if !self.may_be_read(path) {
            return Err(wrong(format!(
                "the user {ACCOUNT}, who runs the gateway, may not read it: run chown {ACCOUNT}:{ACCOUNT} {}",
                path.display()
            )));
        }
        let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
        match bytes.get(..end) {
            Some(secret) if !secret.is_empty() => Ok(secret.to_owned()),
            _ => Err(wrong("it is empty: write the password of the BMC's user into it".to_owned())),
        }
    }

    fn is_the_gateways(&self, path: &Path, fault: &picket_permissions::Fault) -> bool {
        let is_private = |about: std::fs::Metadata| about.mode() & 0o077 == 0;
        let is_owned = matches!(&fault.what, What::Owner { owner, .. } if self.account.is_some_and(|account| account.user == *owner));
        // Nobody but the owner and root changes which file stands there.
        let is_kept = path.parent().is_some_and(|above| picket_permissions::check(above).is_ok());
        is_owned && is_kept && path.symlink_metadata().is_ok_and(|about| about.is_file() && is_private(about))
    }

    fn may_be_read(&self, path: &Path) -> bool {
        let Some(account) = self.account else { return true };
        path.metadata().is_ok_and(|about| {
            about.uid() == account.user || about.gid() == account.group && about.mode() & 0o040 != 0
        })
    }

    fn mended(&self, path: &Path, fault: &picket_permissions::Fault) -> String {
        match &fault.what {
            What::Unread(error) if error.kind() == io::ErrorKind::NotFound => {
                let owner = self.account.map(|_| format!("-o {ACCOUNT} -g {ACCOUNT} ")).unwrap_or_default();
                format!(
                    "it is not there: make it by install {owner}-m 600 /dev/stdin {} (type the password, Enter, Ctrl-D)",
                    path.display()
                )
            }
            What::Unread(error) => format!("it cannot be read: {error}"),
            _ => fault.to_string(),
        }
    }

    fn make_directory(&self) -> Result<(), Fault> {
        let directory = &self.directory;
        let made = DirBuilder::new().recursive(true).mode(0o755).create(directory);
        made.map_err(|error| Fault::Failed(format!("{} cannot be made: {error}", directory.display())))?;
        let kept = picket_permissions::check(directory);
        kept.map_err(|fault| Fault::Usage(format!("--dir {}: {fault}", directory.display())))
    }
}

fn taken(file: &Path) -> Fault {
    Fault::Usage(format!(
        "{} is there already, and is not overwritten: add nodes to it by hand, or say --force to replace it, or --dry-run to see \
         what would be written",
        file.display()
    ))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The account of the gateway, as passwd(5) and group(5) have it.
fn account(passwd: &str, group: &str) -> Option<Account> {
    let number = |text: &str| {
        text.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(ACCOUNT)).then(|| fields.nth(1)?.parse().ok())?
        })
    };
    Some(Account { user: number(passwd)?, group: number(group)? })
}

#[cfg(test)]
mod tests;
