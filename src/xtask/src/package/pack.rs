//! The forms of a package, by the tools that others wrote: cargo-deb (MIT) and cargo-generate-rpm (MIT). Both read a manifest of cargo's;
//! theirs is written here, with a crate in it that depends on all that is packed, so that the SBOM is made from it as well.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::build::quiet;
use super::commit::Commit;
use super::contents::{Contents, File};
use super::make;
use crate::failure::Failure;
use crate::image::oci::architecture;
use crate::image::tar::{Owner, Tar};
use crate::tool::Tool;
use crate::{place, run};

pub const DEB: Tool = Tool { name: "cargo-deb", version: "3.8.0", options: &[] };
pub const RPM: Tool = Tool { name: "cargo-generate-rpm", version: "0.21.1", options: &[] };

const ABOUT: &str =
    "Out-of-band fencing gateway: switches failed nodes off, proves it, and only then lets their volumes go";
const MORE: &str = "The gateway (picketd), the command picket, the controller for Kubernetes, the fence agent fence_picket, and picket-fleet to \
     rehearse with. Nothing is started by the installation.";
/// Nobody reads mail for it; Debian wants the field.
const MAINTAINER: &str = "The makers of Picket <picket@localhost>";
/// Where zsh looks: Debian's has a folder of its own for what packages bring.
const ZSH: (&str, &str) = ("usr/share/zsh/site-functions/", "usr/share/zsh/vendor-completions/");

/// What is packed, laid out and described.
pub struct Job {
    /// The folder with the manifest.
    pub work: PathBuf,
    /// Of the workspace.
    pub version: String,
    /// Of the commit: the only time that gets in.
    pub time: String,
    contents: Contents,
    revision: u64,
}

impl Job {
    /// Writes the manifest. `least` is the glibc that the programs want.
    pub fn prepare(
        work: PathBuf,
        contents: Contents,
        commit: &Commit,
        least: (u32, u32),
        revision: u64,
    ) -> Result<Self, Failure> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let text = manifest(&contents.files, &version, least);
        make(&work)?;
        let place = work.join("Cargo.toml");
        std::fs::write(&place, text).map_err(Failure::of(place.display()))?;
        std::fs::write(work.join("lib.rs"), "").map_err(Failure::of(work.display()))?;
        // What was built is what is listed: the versions of the workspace's own lock.
        std::fs::copy(place::top().join("Cargo.lock"), work.join("Cargo.lock"))
            .map_err(Failure::of("Cargo.lock"))?;
        Ok(Self { work, version, time: commit.time.clone(), contents, revision })
    }

    /// For Debian and what comes from it.
    pub fn deb(&self, out: &Path) -> Result<(), Failure> {
        let mut pack = self.by(DEB)?;
        pack.args(["--manifest-path", "Cargo.toml", "--no-build", "--no-strip", "--deb-revision"]);
        pack.arg(self.revision.to_string()).arg("--output").arg(out);
        run::shown(pack)
    }

    /// For Fedora, RHEL, SUSE, and what comes from them.
    pub fn rpm(&self, out: &Path) -> Result<(), Failure> {
        let mut pack = self.by(RPM)?;
        // RHEL 8 reads no zstd; which libraries are wanted stands in the manifest.
        pack.args(["--auto-req", "no", "--payload-compress", "gzip", "--source-date", &self.time]);
        pack.args(["--set-metadata", &format!("release = \"{}\"", self.revision), "--output"]).arg(out);
        run::shown(pack)
    }

    /// For everybody else: the same files, each at its place below one folder.
    pub fn tarball(&self, out: &Path) -> Result<(), Failure> {
        let mut tar = Tar::default();
        for file in &self.contents.files {
            let staged = self.contents.stage.join(&file.path);
            let content = std::fs::read(&staged).map_err(Failure::of(staged.display()))?;
            tar.file(&format!("picket-{}/{}", self.version, file.path), file.mode, Owner(0), &content)?;
        }
        let place = out.join(format!("picket-{}-linux-{}.tar", self.version, architecture()));
        std::fs::write(&place, tar.done()).map_err(Failure::of(place.display()))?;
        let mut pack = Command::new("gzip");
        pack.args(["--best", "--no-name"]).arg(place);
        run::shown(pack)
    }

    /// A tool that works in the folder with the manifest, and asks nobody else for anything.
    pub fn by(&self, tool: Tool) -> Result<Command, Failure> {
        let mut command = quiet(&tool.program()?);
        command.arg(tool.name.trim_start_matches("cargo-")).current_dir(&self.work);
        command.env("SOURCE_DATE_EPOCH", &self.time).env("CARGO_NET_OFFLINE", "true");
        // A variable that names the workspace's target folder would send what is made there.
        command.env("CARGO_TARGET_DIR", self.work.join("target"));
        Ok(command)
    }
}

fn manifest(files: &[File], version: &str, least: (u32, u32)) -> String {
    let top = place::top().display().to_string();
    let scripts = format!("{top}/deploy/package");
    let glibc = format!("{}.{}", least.0, least.1);
    let of_deb: String = files.iter().map(|file| asset(file, &file.path.replace(ZSH.0, ZSH.1), "")).collect();
    let of_rpm: String = files
        .iter()
        .map(|file| {
            let more = if file.is_config { ", config = \"noreplace\"" } else { "" };
            asset(file, &format!("/{}", file.path), more)
        })
        .collect();
    format!(
        "[workspace]\n\n[package]\nname = \"picket\"\nversion = \"{version}\"\nedition = \"2024\"\nlicense = \"Apache-2.0\"\n\
         description = {about}\nauthors = [{maintainer}]\n\n[lib]\npath = \"lib.rs\"\n\n[dependencies]\n\
         picket-cli = {{ path = \"{top}/src/cli\" }}\npicket-controller = {{ path = \"{top}/src/controller\" }}\n\
         picket-fleet = {{ path = \"{top}/drivers/fleet\" }}\npicket-gateway = {{ path = \"{top}/src/gateway\" }}\n\n\
         [package.metadata.deb]\nmaintainer = {maintainer}\nlicense-file = [\"{top}/LICENSE\", \"0\"]\n\
         extended-description = {more}\nsection = \"admin\"\npriority = \"optional\"\n\
         depends = \"libc6 (>= {glibc}), systemd | systemd-sysusers, systemd | systemd-tmpfiles\"\n\
         recommends = \"ca-certificates\"\nsuggests = \"fence-agents\"\nmaintainer-scripts = \"{scripts}/deb\"\n\
         assets = [\n{of_deb}]\n\n\
         [package.metadata.generate-rpm]\nassets = [\n{of_rpm}]\n\
         post_install_script = \"{scripts}/rpm/post.sh\"\npre_uninstall_script = \"{scripts}/rpm/preun.sh\"\n\
         post_uninstall_script = \"{scripts}/rpm/postun.sh\"\n\n\
         [package.metadata.generate-rpm.requires]\nglibc = \">= {glibc}\"\nsystemd = \"*\"\n\n\
         [package.metadata.generate-rpm.recommends]\nca-certificates = \"*\"\n",
        about = quoted(ABOUT),
        more = quoted(MORE),
        maintainer = quoted(MAINTAINER),
    )
}

fn asset(file: &File, to: &str, more: &str) -> String {
    let from = format!("stage/{}", file.path);
    format!("  {{ source = {}, dest = {}, mode = \"{:o}\"{more} }},\n", quoted(&from), quoted(to), file.mode)
}

/// As TOML has it, and JSON too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_each_file_and_only_settings_stay_as_they_are() {
        let file =
            |path: &str, mode| File { path: path.to_owned(), mode, is_config: path.starts_with("etc/") };
        let files = [
            file("etc/picket/picket.toml", 0o644),
            file("usr/bin/picketd", 0o755),
            file("usr/share/zsh/site-functions/_picket", 0o644),
        ];
        let text = manifest(&files, "0.1.0", (2, 28));
        for line in [
            "source = \"stage/usr/bin/picketd\", dest = \"usr/bin/picketd\", mode = \"755\" }",
            "source = \"stage/usr/bin/picketd\", dest = \"/usr/bin/picketd\", mode = \"755\" }",
            "dest = \"/etc/picket/picket.toml\", mode = \"644\", config = \"noreplace\" }",
            "dest = \"usr/share/zsh/vendor-completions/_picket\"",
            "dest = \"/usr/share/zsh/site-functions/_picket\"",
            "libc6 (>= 2.28)",
            "glibc = \">= 2.28\"",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        assert_eq!(text.matches("noreplace").count(), 1);
    }
}
