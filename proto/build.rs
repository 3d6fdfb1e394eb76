//! Compiles the protos with protox, so that no protoc is needed, into messages, client, server and descriptors.

use std::error::Error;
use std::path::{Path, PathBuf};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let package = root.join("picket/v1");
    println!("cargo:rerun-if-changed={}", package.display());

    let descriptors = protox::compile(protos(&package)?, [&root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("picket.v1.bin"), descriptors.encode_to_vec())?;
    // Maps are read by people, so their order is kept stable.
    tonic_prost_build::configure().btree_map(".").compile_fds(descriptors)?;
    Ok(())
}

fn protos(package: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(package)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
