//! `cargo xtask image`: images of what runs in clusters, made of this machine's own files; no registry and
//! no daemon is asked.
//!
//! A further image is one more entry in `PRODUCTS`. The tests' own images are made by the same code.
//!
//! # Invariants
//!
//! - The same inputs give the same bytes: no time, no user, no order of a disk's. Shown by
//!   `the_same_programs_give_the_same_layers`, `the_same_image_has_the_same_bytes`.
//! - The image's name is of no registry.

mod libraries;
pub mod oci;
pub mod tar;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::oci::{Image, Packed};
use self::tar::{Owner, Tar};
use crate::failure::Failure;
use crate::{place, run};

/// Who runs in an image: nobody of the machine's, and none of its files' owners but of those that it writes.
const USER: Owner = Owner(65_532);
/// Of no registry: an image that was not imported is missed, and not fetched from wherever somebody has one of that name.
const REGISTRY: &str = "localhost";
/// Where distributions keep whom they trust; an image has it in the first place.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];

/// What is made: one for each part that runs in clusters.
const PRODUCTS: [Product; 1] = [Product {
    name: "picket",
    about: "Out-of-band fencing gateway: picketd, the command picket, and picket-controller",
    packages: &["picket-gateway", "picket-cli", "picket-controller"],
    programs: &["picketd", "picket", "picket-controller"],
    folders: &[("etc/picket", 0o755, Owner(0)), ("var/lib/picket", 0o700, USER), ("run/picket", 0o750, USER)],
    home: "/var/lib/picket",
    ports: &["7070/tcp", "9469/tcp"],
}];

/// An image of ours.
struct Product {
    name: &'static str,
    about: &'static str,
    /// Of the workspace, in which its programs are.
    packages: &'static [&'static str],
    /// The first of them is run.
    programs: &'static [&'static str],
    /// Besides those of its files, without a slash in front.
    folders: &'static [(&'static str, u32, Owner)],
    home: &'static str,
    ports: &'static [&'static str],
}

/// What the command line says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Where to; none: `images` in the target folder.
    pub out: Option<PathBuf>,
    /// Of cargo's; none: release.
    pub profile: Option<String>,
    /// A folder with programs that are built already.
    pub from: Option<PathBuf>,
}

/// Makes them all, and says which they are.
pub fn image(options: &Options) -> Result<(), Failure> {
    let metadata = place::metadata(&["--no-deps"])?;
    let target =
        metadata["target_directory"].as_str().ok_or(Failure::new("cargo metadata names no target folder"))?;
    let out = options.out.clone().unwrap_or_else(|| Path::new(target).join("images"));
    std::fs::create_dir_all(&out).map_err(Failure::of(out.display()))?;
    for product in &PRODUCTS {
        let about = About::of(product, &metadata)?;
        let programs = match &options.from {
            Some(given) => given.clone(),
            None => build(product, options.profile.as_deref().unwrap_or("release"), Path::new(target))?,
        };
        let name = format!("{REGISTRY}/{}:{}", product.name, about.version);
        let image = Image {
            name: &name,
            run: run_by(product, &about),
            layers: vec![foundations(product, &programs)?, own(product, &programs)?],
        };
        let packed: Packed = oci::pack(image)?;
        let file = out.join(format!("{}-{}-{}.tar", product.name, about.version, oci::architecture()));
        packed.write(&file)?;
        println!("{}: {name}, {}", file.display(), packed.digest);
    }
    Ok(())
}

/// What cargo knows of a product's first package.
struct About {
    version: String,
    licence: String,
}

impl About {
    fn of(product: &Product, metadata: &Value) -> Result<Self, Failure> {
        let packages = metadata["packages"].as_array();
        let found =
            packages.into_iter().flatten().find(|package| Some(&package["name"]) == first(product).as_ref());
        let text = |key: &str| found.and_then(|package| package[key].as_str()).map(str::to_owned);
        match (text("version"), text("license")) {
            (Some(version), Some(licence)) => Ok(Self { version, licence }),
            _ => {
                Err(Failure::new(format!("cargo metadata knows no version and licence of {}", product.name)))
            }
        }
    }
}

fn first(product: &Product) -> Option<Value> {
    product.packages.first().map(|name| json!(name))
}

/// Builds its programs; the folder in which they are.
fn build(product: &Product, profile: &str, target: &Path) -> Result<PathBuf, Failure> {
    let mut build = place::cargo();
    build.args(["build", "--locked", "--profile", profile]);
    build.args(product.packages.iter().flat_map(|package| ["--package", package]));
    build.args(product.programs.iter().flat_map(|program| ["--bin", program]));
    run::shown(build)?;
    Ok(target.join(if profile == "dev" { "debug" } else { profile }))
}

fn run_by(product: &Product, about: &About) -> Value {
    let ports: BTreeMap<&str, Value> = product.ports.iter().map(|port| (*port, json!({}))).collect();
    json!({
        "User": format!("{0}:{0}", USER.0),
        "WorkingDir": product.home,
        "Entrypoint": product.programs.first().map(|program| format!("/usr/local/bin/{program}")).into_iter().collect::<Vec<_>>(),
        "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
        "ExposedPorts": ports,
        "Labels": {
            "org.opencontainers.image.title": product.name,
            "org.opencontainers.image.description": product.about,
            "org.opencontainers.image.version": about.version,
            "org.opencontainers.image.licenses": about.licence,
        },
    })
}

/// What changes rarely: the libraries, whom TLS believes, who the user is, and the folders.
fn foundations(product: &Product, programs: &Path) -> Result<Vec<u8>, Failure> {
    let user = format!("picket:x:{0}:{0}:picket:{1}:/usr/sbin/nologin\n", USER.0, product.home);
    let mut layer = Layer::default();
    layer.put("/etc/passwd", 0o644, format!("root:x:0:0:root:/:/usr/sbin/nologin\n{user}").into_bytes());
    layer.put("/etc/group", 0o644, format!("root:x:0:\npicket:x:{}:\n", USER.0).into_bytes());
    // Without it names are asked of the DNS before /etc/hosts.
    layer.put("/etc/nsswitch.conf", 0o644, b"hosts: files dns\n".to_vec());
    let trusted = AUTHORITIES.iter().map(Path::new).find(|file| file.is_file());
    let trusted = trusted.ok_or(Failure::new(
        "no file with the authorities that TLS believes is on this machine (Debian: the package ca-certificates)",
    ))?;
    layer.put("/etc/ssl/certs/ca-certificates.crt", 0o644, read(trusted)?);
    let mut libraries = BTreeSet::new();
    for program in product.programs {
        libraries.extend(libraries::of(&programs.join(program))?);
    }
    for library in libraries {
        // Under the name by which the loader finds it; what it is a link to does not matter.
        layer.put(&library.display().to_string(), 0o755, read(&library)?);
    }
    layer.folders.insert("tmp".to_owned(), (0o1777, Owner(0)));
    layer
        .folders
        .extend(product.folders.iter().map(|(path, mode, owner)| ((*path).to_owned(), (*mode, *owner))));
    layer.packed()
}

/// What changes with each build.
fn own(product: &Product, programs: &Path) -> Result<Vec<u8>, Failure> {
    let mut layer = Layer::default();
    for program in product.programs {
        layer.put(&format!("/usr/local/bin/{program}"), 0o755, read(&programs.join(program))?);
    }
    layer.put(
        &format!("/usr/share/doc/{}/LICENSE", product.name),
        0o644,
        read(&place::top().join("LICENSE"))?,
    );
    layer.packed()
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(Failure::of(file.display()))
}

/// An image of one static program of the tests and nothing else.
pub fn of_program(program: &Path, name: &str, to: &Path) -> Result<(), Failure> {
    let mut layer = Layer::default();
    layer.put("/app", 0o755, read(program)?);
    let run = json!({ "Entrypoint": ["/app"] });
    oci::pack(Image { name, run, layers: vec![layer.packed()?] })?.write(to)
}

/// Files, and the folders that they are in.
#[derive(Default)]
struct Layer {
    files: BTreeMap<String, (u32, Vec<u8>)>,
    folders: BTreeMap<String, (u32, Owner)>,
}

impl Layer {
    fn put(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        self.files.insert(path.trim_start_matches('/').to_owned(), (mode, content));
    }

    /// In the order of their names, parents first.
    fn packed(&self) -> Result<Vec<u8>, Failure> {
        let named = self.files.keys().chain(self.folders.keys()).map(Path::new);
        let parents = named.flat_map(|path| path.ancestors().skip(1)).filter_map(Path::to_str);
        let mut folders: BTreeMap<String, (u32, Owner)> = parents
            .filter(|path| !path.is_empty())
            .map(|path| (path.to_owned(), (0o755, Owner(0))))
            .collect();
        folders.extend(self.folders.clone());
        let mut tar = Tar::default();
        for (path, (mode, owner)) in folders {
            tar.folder(&path, mode, owner)?;
        }
        for (path, (mode, content)) in &self.files {
            tar.file(path, *mode, Owner(0), content)?;
        }
        Ok(tar.done())
    }
}

#[cfg(test)]
mod tests;
