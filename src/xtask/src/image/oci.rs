//! An image as the OCI's image layout has it (image-spec 1.1), in one archive: `ctr images import` and `podman load` take it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::tar::{Owner, Tar};
use crate::failure::Failure;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Not compressed: it is imported from the disk that it was made on.
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// An image that is to be packed.
#[derive(Debug)]
pub struct Image<'a> {
    /// By which it is asked for, with its tag.
    pub name: &'a str,
    /// How it is run, as the key `config` of an image's configuration.
    pub run: Value,
    /// From the lowest one up, as whole archives.
    pub layers: Vec<Vec<u8>>,
}

/// A packed image.
#[derive(Debug)]
pub struct Packed {
    /// The archive.
    pub archive: Vec<u8>,
    /// Of its manifest, by which it is known: `sha256:…`.
    pub digest: String,
}

impl Packed {
    /// Writes the archive, so that one that was interrupted is not taken for whole.
    pub fn write(&self, to: &Path) -> Result<(), Failure> {
        let fresh = to.with_extension("made");
        std::fs::write(&fresh, &self.archive).map_err(Failure::of(fresh.display()))?;
        std::fs::rename(&fresh, to).map_err(Failure::of(to.display()))
    }
}

#[derive(Debug, Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Keeps it; what says of it where it is.
    fn keep(&mut self, kind: &str, content: Vec<u8>) -> Value {
        let (digest, size) = (digest(&content), content.len());
        let described = json!({ "mediaType": kind, "digest": format!("sha256:{digest}"), "size": size });
        self.0.insert(digest, content);
        described
    }
}

/// Packs it. The same image gives the same bytes.
pub fn pack(image: Image<'_>) -> Result<Packed, Failure> {
    let mut blobs = Blobs::default();
    let layers: Vec<Value> = image.layers.into_iter().map(|layer| blobs.keep(LAYER, layer)).collect();
    // What is not compressed is its own content.
    let contents: Vec<&Value> = layers.iter().map(|layer| &layer["digest"]).collect();
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": image.run,
        "rootfs": { "type": "layers", "diff_ids": contents },
    });
    let config = blobs.keep(CONFIG, config.to_string().into_bytes());
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers });
    let mut manifest = blobs.keep(MANIFEST, manifest.to_string().into_bytes());
    let known = manifest["digest"].as_str().unwrap_or_default().to_owned();
    manifest["platform"] = json!({ "architecture": architecture(), "os": "linux" });
    // The first is containerd's, the second is everybody's.
    manifest["annotations"] = json!({
        "io.containerd.image.name": image.name,
        "org.opencontainers.image.ref.name": image.name,
    });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest] });

    let mut archive = Tar::default();
    archive.file("oci-layout", 0o644, Owner(0), br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    archive.file("index.json", 0o644, Owner(0), index.to_string().as_bytes())?;
    archive.folder("blobs", 0o755, Owner(0))?;
    archive.folder("blobs/sha256", 0o755, Owner(0))?;
    for (digest, content) in &blobs.0 {
        archive.file(&format!("blobs/sha256/{digest}"), 0o644, Owner(0), content)?;
    }
    Ok(Packed { archive: archive.done(), digest: known })
}

/// This machine's, in the words of Go, which images use.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed() -> Packed {
        let layer = |text: &str| {
            let mut tar = Tar::default();
            tar.file("app", 0o755, Owner(0), text.as_bytes()).expect("short");
            tar.done()
        };
        let image = Image {
            name: "test.local/app:1",
            run: json!({ "Entrypoint": ["/app"] }),
            layers: vec![layer("one"), layer("two")],
        };
        pack(image).expect("packed")
    }

    /// Its files, by their names. What is in a folder of its own is unpacked by the system's tar.
    fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut rest = archive;
        while let Some((header, after)) = rest.split_at_checked(512) {
            let text = |from: usize, to: usize| {
                let field = &header[from..to];
                let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
                String::from_utf8(field[..end].to_vec()).expect("text")
            };
            if text(0, 100).is_empty() {
                break;
            }
            let size = usize::from_str_radix(&text(124, 136), 8).expect("a size");
            found.insert(text(0, 100), after[..size].to_vec());
            rest = &after[size.next_multiple_of(512)..];
        }
        found
    }

    fn parsed(content: &[u8]) -> Value {
        serde_json::from_slice(content).expect("JSON")
    }

    #[test]
    fn everything_in_the_layout_is_what_it_is_said_to_be() {
        let packed = packed();
        let files = files(&packed.archive);
        assert_eq!(parsed(&files["oci-layout"])["imageLayoutVersion"], "1.0.0");
        let blob = |described: &Value, kind: &str| {
            assert_eq!(described["mediaType"], kind);
            let of = described["digest"].as_str().expect("a digest").strip_prefix("sha256:").expect("sha256");
            let content = &files[&format!("blobs/sha256/{of}")];
            assert_eq!(
                (digest(content).as_str(), Some(content.len() as u64)),
                (of, described["size"].as_u64())
            );
            content
        };
        let index = parsed(&files["index.json"]);
        assert_eq!((&index["schemaVersion"], &index["mediaType"]), (&json!(2), &json!(INDEX)));
        let [described] = &index["manifests"].as_array().expect("manifests")[..] else { panic!("{index}") };
        assert_eq!(described["digest"], packed.digest.as_str());
        assert_eq!(described["annotations"]["org.opencontainers.image.ref.name"], "test.local/app:1");
        let manifest = parsed(blob(described, MANIFEST));
        let config = parsed(blob(&manifest["config"], CONFIG));
        let layers = manifest["layers"].as_array().expect("layers");
        let contents: Vec<String> =
            layers.iter().map(|layer| format!("sha256:{}", digest(blob(layer, LAYER)))).collect();
        assert_eq!(config["rootfs"]["diff_ids"], json!(contents));
        assert_eq!((contents.len(), &config["config"]["Entrypoint"]), (2, &json!(["/app"])));
        // Nothing lies there that nobody names: the layout, the index, two folders, four blobs.
        assert_eq!(files.len(), 8);
    }

    #[test]
    fn the_same_image_has_the_same_bytes() {
        let (one, other) = (packed(), packed());
        assert_eq!(one.archive, other.archive);
        assert_eq!(one.digest, other.digest);
    }
}
