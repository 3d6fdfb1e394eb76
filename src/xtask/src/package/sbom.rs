//! The SBOM: which crates are in the programs, in which version, under which licence. CycloneDX, by cargo-cyclonedx (Apache-2.0).

use std::path::Path;

use super::pack::Job;
use crate::failure::Failure;
use crate::tool::Tool;
use crate::{place, run};

pub const CYCLONEDX: Tool = Tool { name: "cargo-cyclonedx", version: "0.5.9", options: &["--debug"] };
/// The newest that the tool writes.
const SPECIFICATION: &str = "1.5";

/// Writes it of the manifest, which depends on all that is packed.
pub fn write(job: &Job, out: &Path) -> Result<(), Failure> {
    let mut make = job.by(CYCLONEDX)?;
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    make.args(["--manifest-path", "Cargo.toml", "--format", "json", "--spec-version", SPECIFICATION]);
    make.args(["--all", "--quiet", "--target", &target, "--override-filename", "sbom"]);
    run::shown(make)?;
    let made = job.work.join("sbom.json");
    let text = std::fs::read_to_string(&made).map_err(Failure::of(made.display()))?;
    let place = out.join(format!("picket-{}.cdx.json", job.version));
    let text = without_places(&text, &[(&job.work, "/package"), (place::top(), "/picket")]);
    std::fs::write(&place, text).map_err(Failure::of(place.display()))
}

/// Crates that are no registry's are told by where they lie: on whichever machine, in the same words.
fn without_places(text: &str, places: &[(&Path, &str)]) -> String {
    places
        .iter()
        .fold(text.to_owned(), |text, (place, name)| text.replace(&place.display().to_string(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_of_this_machine_is_told() {
        let text = "path+file:///home/a/picket/target/package#0.1.0 path+file:///home/a/picket/src/cli#0.1.0";
        let told = without_places(
            text,
            &[
                (Path::new("/home/a/picket/target/package"), "/package"),
                (Path::new("/home/a/picket"), "/picket"),
            ],
        );
        assert_eq!(told, "path+file:///package#0.1.0 path+file:///picket/src/cli#0.1.0");
    }
}
