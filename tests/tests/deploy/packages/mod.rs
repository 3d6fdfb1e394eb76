//! The packages, as `cargo xtask package` makes them of the programs under test.

mod booted;
mod files;
mod life;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use picket_tests::{PeerError, Result, Said, program};
use tempfile::TempDir;

use self::booted::Debian;

/// By which of them it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Deb,
    Rpm,
}

impl Form {
    fn extension(self) -> &'static str {
        match self {
            Self::Deb => "deb",
            Self::Rpm => "rpm",
        }
    }

    /// Where the package of that revision lies in a system.
    fn brought(self, revision: u8) -> String {
        format!("/root/{revision}.{}", self.extension())
    }

    /// Installed, or upgraded. Debian's names for what it depends on are no names of an .rpm's.
    async fn install(self, system: &mut Debian, revision: u8) -> Result<()> {
        let file = self.brought(revision);
        match self {
            Self::Deb => system.succeeds(&["dpkg", "--install", &file]).await?,
            Self::Rpm => system.succeeds(&["rpm", "--upgrade", "--nodeps", &file]).await?,
        };
        let told = match self {
            Self::Deb => ["dpkg-query", "--show", "--showformat=${Version}", "picket"],
            Self::Rpm => ["rpm", "--query", "--queryformat=%{VERSION}-%{RELEASE}", "picket"],
        };
        if self == Self::Rpm {
            // Each file as it was packed: what it holds, its mode, its owners.
            system.succeeds(&["rpm", "--verify", "--nodeps", "--noconfig", "picket"]).await?;
        }
        let installed = system.succeeds(&told).await?;
        assert!(installed.out.ends_with(&format!("-{revision}")), "{installed:?}");
        Ok(())
    }

    async fn remove(self, system: &mut Debian) -> Result<()> {
        match self {
            Self::Deb => system.succeeds(&["dpkg", "--remove", "picket"]).await.map(drop),
            Self::Rpm => system.succeeds(&["rpm", "--erase", "picket"]).await.map(drop),
        }
    }
}

/// Two revisions of them, of the same programs. Tests of one process have them in common.
struct Packages {
    folder: TempDir,
}

static PACKAGES: Mutex<Weak<Packages>> = Mutex::new(Weak::new());

impl Packages {
    fn made() -> Result<Arc<Self>> {
        // Whoever comes second waits for the first.
        let mut made = PACKAGES.lock();
        if let Some(others) = made.upgrade() {
            return Ok(others);
        }
        let packages = Arc::new(Self::make()?);
        *made = Arc::downgrade(&packages);
        Ok(packages)
    }

    fn make() -> Result<Self> {
        let folder = tempfile::tempdir().map_err(PeerError::io("create a folder for packages"))?;
        let programs = folder.path().join("programs");
        std::fs::create_dir(&programs).map_err(PeerError::io("create a folder for programs"))?;
        for name in
            ["picketd", "picket", "fence_picket", "picket-controller", "picket-fleet", "picket-manual"]
        {
            let mut strip = Command::new("strip");
            // As a build for packages leaves them: to pack their symbols would take minutes.
            strip.arg("-o").arg(programs.join(name)).arg(program(name)?);
            succeeds(strip)?;
        }
        for revision in ["1", "2"] {
            let mut pack = Command::new(program("xtask")?);
            // As cargo runs it.
            pack.env("CARGO_MANIFEST_DIR", Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/xtask"));
            pack.args(["package", "--revision", revision, "--from"]).arg(&programs);
            pack.arg("--out").arg(folder.path().join(revision));
            succeeds(pack)?;
        }
        Ok(Self { folder })
    }

    fn file(&self, form: Form, revision: u8) -> PathBuf {
        let entries =
            std::fs::read_dir(self.folder.path().join(revision.to_string())).expect("a folder of packages");
        let mut files = entries.flatten().map(|entry| entry.path());
        files.find(|file| file.extension().is_some_and(|is| is == form.extension())).expect("there is one")
    }
}

fn succeeds(mut command: Command) -> Result<Said> {
    let what = format!("{command:?}");
    let said = Said::of(command.output().map_err(PeerError::io(what.clone()))?);
    assert_eq!(said.code, 0, "{what}: {said:?}");
    Ok(said)
}
