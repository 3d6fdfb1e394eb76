//! Whether everything is built with Rust and a C compiler alone.

use serde_json::Value;

use crate::failure::Failure;
use crate::place;

/// Crates by which a build script compiles protos. They run `protoc`, unless protox has compiled the protos before.
const COMPILERS: [&str; 3] = ["prost-build", "tonic-prost-build", "protobuf-codegen"];
const INSTEAD: &str = "protox";

/// Looks at the build scripts of all packages, by what they depend on.
pub fn check() -> Result<(), Failure> {
    eprintln!("\n+ what build scripts depend on, from cargo metadata");
    let metadata = place::metadata(&[])?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let wanting: Vec<&str> = packages.iter().filter(|package| wants_protoc(package)).map(name).collect();
    match (packages, wanting.as_slice()) {
        ([], _) => Err(Failure::new("cargo metadata names no package")),
        (_, []) => Ok(()),
        (_, wanting) => Err(Failure::new(format!(
            "the build script of {} runs protoc: use a crate that does not, or compile its protos here with {INSTEAD}",
            wanting.join(", ")
        ))),
    }
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap_or_default()
}

fn wants_protoc(package: &Value) -> bool {
    let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    let builds =
        || dependencies.iter().filter(|one| one["kind"] == "build" && one["optional"] != true).map(name);
    builds().any(|one| COMPILERS.contains(&one)) && !builds().any(|one| one == INSTEAD)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_compiles_protos_without_protox_wants_protoc() {
        let one = |name: &str, kind: Value, optional: bool| json!({"name": name, "kind": kind, "optional": optional});
        let compiles = || one("tonic-prost-build", json!("build"), false);
        for (dependencies, wants) in [
            (vec![compiles()], true),
            (vec![compiles(), one("protox", json!(null), false)], true),
            (vec![compiles(), one("protox", json!("build"), false)], false),
            (vec![one("prost-build", json!(null), false)], false),
            (vec![one("prost-build", json!("build"), true)], false),
            (vec![], false),
        ] {
            assert_eq!(
                wants_protoc(&json!({"name": "a", "dependencies": dependencies})),
                wants,
                "{dependencies:?}"
            );
        }
    }
}
