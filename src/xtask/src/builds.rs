//! Whether everything is built with Rust and a C compiler alone.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::failure::Failure;
use crate::place;

/// Crates by which a build script compiles protos. They run `protoc`, unless protox has compiled the protos before.
const COMPILERS: [&str; 4] = ["prost-build", "tonic-prost-build", "protobuf-codegen", "tonic-build"];
const INSTEAD: &str = "protox";

/// Where prost-build looks for `protoc` first: a build script of its that runs with this does not find one.
pub const NO_PROTOC: (&str, &str) = ("PROTOC", "/nonexistent/protoc");

/// Looks at the build scripts of all packages, with all features, by what they depend on. It names those that want `protoc`. A build from
/// nothing under [`NO_PROTOC`] proves that none did, through whatever they depend on; what runs `protoc` by its own name is seen by neither.
pub fn check() -> Result<(), Failure> {
    eprintln!("\n+ what build scripts depend on, from cargo metadata");
    wanting(&place::metadata(&["--all-features"])?).and_then(|wanting| match wanting.as_slice() {
        [] => Ok(()),
        wanting => Err(Failure::new(format!(
            "the build script of {} runs protoc: use a crate that does not, or compile its protos here with {INSTEAD}",
            wanting.join(", ")
        ))),
    })
}

/// Those whose build script compiles protos without protox, by what cargo resolved: with what a feature turns on.
fn wanting(metadata: &Value) -> Result<Vec<String>, Failure> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&metadata["packages"]);
    let by_id: BTreeMap<&str, &Value> =
        packages.iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes = list(&metadata["resolve"]["nodes"]);
    if nodes.is_empty() {
        return Err(Failure::new("cargo metadata resolves no package"));
    }
    let is_of_a_build =
        |dependency: &Value| list(&dependency["dep_kinds"]).iter().any(|one| one["kind"] == "build");
    let wants = |node: &&Value| {
        let builds: Vec<Value> = list(&node["deps"]).into_iter().filter(is_of_a_build).collect();
        let builds = || builds.iter().filter_map(|one| by_id.get(text(&one["pkg"])).copied());
        builds().any(compiles) && !builds().any(|one| one["name"] == INSTEAD)
    };
    Ok(nodes
        .iter()
        .filter(wants)
        .filter_map(|node| by_id.get(text(&node["id"])))
        .map(|one| text(&one["name"]).to_owned())
        .collect())
}

/// tonic-build runs `protoc` before 0.14, in which that became tonic-prost-build.
fn compiles(package: &Value) -> bool {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let is_later = !matches!((numbers.next(), numbers.next()), (Some(Ok(0)), Some(Ok(..14))));
    COMPILERS.contains(&name) && !(name == "tonic-build" && is_later)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A package `a` that depends on these, by name, version and kind.
    fn metadata(on: &[(&str, &str, Value)]) -> Value {
        let package = |name: &str, version: &str| json!({"id": format!("{name} {version}"), "name": name, "version": version});
        let packages: Vec<Value> = on.iter().map(|(name, version, _)| package(name, version)).collect();
        let dep = |(name, version, kind): &(&str, &str, Value)| json!({"pkg": format!("{name} {version}"), "dep_kinds": [{"kind": "dev"}, {"kind": kind}]});
        let deps: Vec<Value> = on.iter().map(dep).collect();
        let packages = [packages, vec![package("a", "0.1.0")]].concat();
        json!({
            "packages": packages,
            "resolve": {"nodes": [{"id": "a 0.1.0", "deps": deps}]},
        })
    }

    #[test]
    fn who_compiles_protos_without_protox_wants_protoc() {
        let build = || json!("build");
        let compiles = || ("tonic-prost-build", "0.14.9", build());
        for (on, wants) in [
            (vec![compiles()], true),
            (vec![compiles(), ("protox", "0.10.0", Value::Null)], true),
            (vec![compiles(), ("protox", "0.10.0", build())], false),
            (vec![("prost-build", "0.14.4", Value::Null)], false),
            // An optional one is resolved where a feature turns it on.
            (vec![("prost-build", "0.14.4", build())], true),
            (vec![("tonic-build", "0.12.3", build())], true),
            (vec![("tonic-build", "0.13.1", build())], true),
            (vec![("tonic-build", "0.14.0", build())], false),
            (vec![("tonic-build", "1.0.0", build())], false),
            (vec![], false),
        ] {
            let wanted = if wants { vec!["a".to_owned()] } else { Vec::new() };
            assert_eq!(wanting(&metadata(&on)).expect("it is resolved"), wanted, "{on:?}");
        }
        assert!(wanting(&json!({"packages": [], "resolve": {"nodes": []}})).is_err());
    }
}
