//! The bodies on stable: over the kept corpus, and over deterministic mutations of it.
//!
//! `PICKET_SEED` gives other mutations, `PICKET_SOAK=1` two hundred times as many.

mod memory;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use picket_fuzz::{Mutator, TARGETS, Target};

#[global_allocator]
static COUNTED: memory::Counted = memory::Counted;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The corpus of a target, by the names of its files.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let directory = fuzz().join("corpus").join(name);
    let listed =
        std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.expect("listed").path()).collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read(&path).expect("read"))
    };
    files.into_iter().map(read).collect()
}

/// The input that failed, where `cargo fuzz run TARGET FILE` and this test's reader find it.
struct Trying<'a> {
    target: &'a Target,
    what: String,
    input: &'a [u8],
}

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.failed", self.target.name));
            let kept = std::fs::write(&file, self.input).map(|()| file.display().to_string());
            eprintln!("{}: {} fails; the input is kept in {kept:?}", self.target.name, self.what);
        }
    }
}

fn try_one(target: &Target, what: String, input: &[u8]) -> bool {
    let trying = Trying { target, what, input };
    let (taken, most) = memory::most_within(|| (target.body)(input));
    assert!(most <= target.memory, "{most} bytes at once");
    drop(trying);
    taken
}

fn run(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let seeds = corpus(name);
    assert!(seeds.len() >= 2, "a corpus of {}", seeds.len());
    let taken = seeds.iter().filter(|(file, input)| try_one(target, file.clone(), input)).count();
    assert!(
        taken > 0 && taken < seeds.len(),
        "{taken} of {} seeds are taken: some ought to be, some not",
        seeds.len()
    );
    let seed = std::env::var("PICKET_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let long = std::env::var_os("PICKET_SOAK").is_some();
    let runs = if long { target.runs * 200 } else { target.runs };
    println!("{name}: {} seeds, {runs} mutations, PICKET_SEED={seed}", seeds.len());
    let inputs: Vec<Vec<u8>> = seeds.into_iter().map(|(_, input)| input).collect();
    let mut mutator = Mutator::new(&inputs, seed);
    let mut taken = 0;
    for nth in 0..runs {
        let input = mutator.next_input();
        taken += u32::from(try_one(target, format!("mutation {nth} of PICKET_SEED={seed}"), &input));
    }
    println!("{name}: {taken} of the mutations were taken");
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })*

        const RUN: &[&str] = &[$(stringify!($name)),*];
    };
}

targets!(
    ipmi_packet,
    ipmi_handshake,
    ipmi_session,
    ipmi_answers,
    settings,
    hostlist,
    roles,
    stored,
    backup,
    audit_line,
    audit_file,
    receipt,
    request,
    certificate,
    shown_certificate,
);

#[test]
fn every_body_has_a_test_a_target_and_a_corpus() {
    let bodies: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(RUN.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), bodies);
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).expect("the manifest of cargo-fuzz");
    for name in &bodies {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} stands in no [[bin]]");
        let file = fuzz().join("fuzz_targets").join(format!("{name}.rs"));
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(text.contains(&format!("run(\"{name}\", data)")), "{text}");
    }
    let kept = std::fs::read_dir(fuzz().join("corpus")).expect("a corpus");
    let kept: BTreeSet<String> =
        kept.map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(kept, bodies);
}

#[test]
fn a_body_that_fails_keeps_its_input() {
    if std::env::var_os("PICKET_FUZZ_FAILS").is_some() {
        let target = Target { name: "nothing", body: |_| panic!("as it should"), runs: 1, memory: 0 };
        try_one(&target, "a test".to_owned(), b"what failed");
        return;
    }
    let this = std::env::current_exe().expect("this test");
    let ended = Command::new(this)
        .args(["a_body_that_fails_keeps_its_input", "--exact", "--nocapture"])
        .env("PICKET_FUZZ_FAILS", "1")
        .output()
        .expect("it runs");
    assert!(!ended.status.success());
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nothing.failed");
    assert_eq!(std::fs::read(&kept).expect("kept"), b"what failed");
    std::fs::remove_file(kept).expect("removed");
}
