//! The Kubernetes of the tests, outside of the sources: the real programs from Go modules, and what is ours beside them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::go::Go;
use crate::{image, place};

#[path = "../../../tests/src/peers/kubernetes/stamp.rs"]
mod stamp;

const KUBERNETES: [&str; 5] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"];
const ATTACHER: &str = "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher";
const HELM: &str = "helm.sh/helm/v3/cmd/helm";
const KWOK: &str = "sigs.k8s.io/kwok/cmd/kwok";
const IMAGES: [&str; 2] = ["pause", "writer"];

/// The folder with `bin` and `images`: built once, in several minutes, and again what changed of its sources.
pub fn programs() -> Result<PathBuf, Failure> {
    if let Some(given) = std::env::var_os("PICKET_TEST_KUBERNETES") {
        return Ok(given.into());
    }
    let sources = place::top().join("tests/peers/kubernetes");
    let unread = || Failure::of(sources.display());
    let home = place::cache()?.join(stamp::folder(&sources).map_err(unread())?);
    if home.exists() {
        return Ok(home);
    }
    let go = Go::find()?;
    if home.exists() {
        return Ok(home);
    }
    // Under another name first, so that one that was interrupted is not taken for whole.
    let made = unfinished(&home);
    empty(&made)?;
    for module in stamp::MODULES {
        let source = sources.join(module);
        let part = place::cache()?.join("go/kubernetes-parts");
        let part = part.join(format!("{module}-{}", stamp::of(&source).map_err(unread())?));
        if !part.exists() {
            let fresh = unfinished(&part);
            empty(&fresh)?;
            build(&go, module, &source, &fresh)?;
            std::fs::rename(&fresh, &part).map_err(Failure::of(part.display()))?;
        }
        // The same files by another name: a change of ours builds the rest no second time, and takes no room for it.
        for folder in ["bin", "images"] {
            link(&part.join(folder), &made.join(folder))?;
        }
    }
    std::fs::rename(&made, &home).map_err(Failure::of(home.display()))?;
    go.forget()?;
    Ok(home)
}

/// Machines with containers want mounts, namespaces and cgroups.
///
/// # Errors
/// Who runs this is not root.
pub fn may_run() -> Result<(), Failure> {
    let mut id = Command::new("id");
    let told = id.arg("-u").output().map_err(Failure::of("id -u"))?;
    if told.stdout.trim_ascii() == b"0" {
        return Ok(());
    }
    Err(Failure::new(
        "machines with containers want root (mounts, namespaces, cgroups): run it as root, in a virtual machine if you like; all of it ends \
         with the demonstration",
    ))
}

/// One of [`stamp::MODULES`].
fn build(go: &Go, module: &str, source: &Path, to: &Path) -> Result<(), Failure> {
    let bin = to.join("bin");
    match module {
        "controlplane" => {
            // All at once, which share most of what they are made of; a folder takes each by its name.
            let packages = KUBERNETES.map(|program| format!("k8s.io/kubernetes/cmd/{program}"));
            let (flags, out) = (format!("-ldflags=-s -w {}", versions()), bin.display().to_string());
            let mut arguments = vec!["build", "-trimpath", &flags, "-o", &out];
            arguments.extend(packages.iter().map(String::as_str));
            go.run(source, &arguments)
        }
        "attacher" => go.build(source, ATTACHER, "", &bin.join("csi-attacher")),
        "helm" => go.build(source, HELM, &helm_s_versions(), &bin.join("helm")),
        "kwok" => go.build(source, KWOK, "", &bin.join("kwok")),
        "images" => IMAGES.iter().try_for_each(|name| image_of(go, name, source, to)),
        _ => go.build(source, ".", "", &bin.join(module)),
    }
}

/// Of the Kubernetes that is built: `1` and `35`.
fn numbers() -> (&'static str, &'static str) {
    let mut numbers = stamp::VERSION.trim_start_matches('v').split('.');
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}

/// For which Kubernetes it makes what it is not asked to install: without it for one that is long over.
fn helm_s_versions() -> String {
    let (major, minor) = numbers();
    let of = "helm.sh/helm/v3/pkg/chartutil";
    format!("-X {of}.k8sVersionMajor={major} -X {of}.k8sVersionMinor={minor}")
}

/// What they say of themselves: without it the API server takes itself for another version, and refuses what it knows.
fn versions() -> String {
    let (version, (major, minor)) = (stamp::VERSION, numbers());
    let of = "k8s.io/component-base/version";
    format!(
        "-X {of}.gitVersion={version} -X {of}.gitMajor={major} -X {of}.gitMinor={minor} \
         -X k8s.io/client-go/pkg/version.gitVersion={version}"
    )
}

/// An image of one program, which no registry has to be asked for.
fn image_of(go: &Go, name: &str, source: &Path, to: &Path) -> Result<(), Failure> {
    let program = to.join(name);
    go.build(source, &format!("./{name}"), "", &program)?;
    image::of_program(
        &program,
        &format!("test.local/{name}:1"),
        &to.join("images").join(format!("{name}.tar")),
    )
}

/// The same place by another name.
fn unfinished(place: &Path) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(".made");
    name.into()
}

/// A folder with an empty `bin` and an empty `images`.
fn empty(folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(Failure::of(folder.display()))?;
    }
    ["bin", "images"]
        .iter()
        .try_for_each(|name| std::fs::create_dir_all(folder.join(name)))
        .map_err(Failure::of(folder.display()))
}

fn link(from: &Path, to: &Path) -> Result<(), Failure> {
    for entry in std::fs::read_dir(from).map_err(Failure::of(from.display()))?.flatten() {
        std::fs::hard_link(entry.path(), to.join(entry.file_name())).map_err(Failure::of(to.display()))?;
    }
    Ok(())
}
