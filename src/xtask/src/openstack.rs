//! The OpenStack of the tests, outside of the sources: a virtual environment of its own, and a prepared folder that each run copies.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::{place, python, run};

/// The folder with `venv` and `template`, both made where they are missing or what they are made of changed: about two minutes.
pub fn environment() -> Result<PathBuf, Failure> {
    if let Some(given) = std::env::var_os("PICKET_TEST_OPENSTACK") {
        return Ok(given.into());
    }
    let (home, sources) = (place::cache()?.join("openstack"), place::top().join("tests/peers/openstack"));
    let python =
        python::with(&home.join("venv"), &sources.join("requirements.txt"), "nova, cinder, openstack")?;
    let (template, stamp) = (home.join("template"), home.join("template.of"));
    let wanted = all_of(
        &["requirements.txt", "cloud.py", "seed.py", "services.py", "etc"].map(|name| sources.join(name)),
    )?;
    if template.exists() && std::fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(home);
    }
    let mut prepare = Command::new(python);
    prepare.arg(sources.join("cloud.py")).arg("prepare").arg(&template);
    run::shown(prepare)?;
    std::fs::write(&stamp, wanted).map_err(Failure::of(stamp.display()))?;
    Ok(home)
}

/// The text of all these files, and of those in these folders.
fn all_of(places: &[PathBuf]) -> Result<String, Failure> {
    let mut text = String::new();
    for place in places {
        text += &if place.is_dir() { all_of(&within(place)?)? } else { read(place)? };
    }
    Ok(text)
}

fn within(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(Failure::of(folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(Failure::of(file.display()))
}
