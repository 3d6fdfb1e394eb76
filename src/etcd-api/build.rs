//! Compiles the proto with protox, so that no protoc is needed, into messages, clients and servers.

use std::error::Error;

const PROTO: &str = "etcdserverpb.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={PROTO}");
    let root = std::env::var("CARGO_MANIFEST_DIR")?;
    let descriptors = protox::compile([PROTO], [root])?;
    // What has a secret in it is not to be printed.
    let secrets = ["etcdserverpb.AuthenticateRequest", "etcdserverpb.AuthenticateResponse"];
    tonic_prost_build::configure().skip_debug(secrets).compile_fds(descriptors)?;
    Ok(())
}
