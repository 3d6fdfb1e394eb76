use super::*;

/// A folder with what stands for a product's programs: this very test.
fn programs(product: &Product) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for program in product.programs {
        std::fs::copy(std::env::current_exe().expect("a program"), folder.path().join(program))
            .expect("copied");
    }
    folder
}

fn listed(layer: &[u8]) -> Vec<String> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), layer).expect("written");
    let mut tar = std::process::Command::new("tar");
    let output = tar.args(["--list", "--file"]).arg(file.path()).output().expect("tar");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn an_image_has_what_its_programs_need() {
    for product in &PRODUCTS {
        let folder = programs(product);
        let lower = listed(&foundations(product, folder.path()).expect("made"));
        for path in [
            "etc/passwd",
            "etc/nsswitch.conf",
            "etc/ssl/certs/ca-certificates.crt",
            "tmp/",
            "var/lib/picket/",
        ] {
            assert!(lower.iter().any(|found| found == path), "{path} is not in {lower:?}");
        }
        for library in libraries::of(&folder.path().join(product.programs[0])).expect("found") {
            let path = library.display().to_string();
            assert!(lower.iter().any(|found| format!("/{found}") == path), "{path} is not in {lower:?}");
        }
        let upper = listed(&own(product, folder.path()).expect("made"));
        for program in product.programs {
            assert!(upper.contains(&format!("usr/local/bin/{program}")), "{upper:?}");
        }
        for layer in [lower, upper] {
            let known: BTreeSet<&str> = layer.iter().map(String::as_str).collect();
            assert_eq!(known.len(), layer.len(), "nothing stands there twice");
            let parent = |path: &str| {
                path.trim_end_matches('/').rsplit_once('/').map(|(parent, _)| format!("{parent}/"))
            };
            assert!(
                layer.iter().filter_map(|path| parent(path)).all(|parent| known.contains(parent.as_str()))
            );
        }
    }
}

#[test]
fn the_same_programs_give_the_same_layers() {
    for product in &PRODUCTS {
        let (one, other) = (programs(product), programs(product));
        let made = |folder: &tempfile::TempDir| {
            let folder = folder.path();
            (foundations(product, folder).expect("made"), own(product, folder).expect("made"))
        };
        assert!(made(&one) == made(&other));
    }
}

#[test]
fn it_is_run_by_nobody_of_the_machine_s_and_says_what_it_is() {
    let metadata = place::metadata(&["--no-deps"]).expect("metadata");
    for product in &PRODUCTS {
        let run = run_by(product, &About::of(product, &metadata).expect("known"));
        assert_eq!(run["User"], "65532:65532");
        assert_eq!(run["Labels"]["org.opencontainers.image.licenses"], "Apache-2.0");
        assert_eq!(run["Labels"]["org.opencontainers.image.version"], env!("CARGO_PKG_VERSION"));
        assert!(run["Entrypoint"][0].as_str().is_some_and(|path| path.starts_with("/usr/local/bin/")));
    }
}
