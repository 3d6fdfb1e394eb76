//! On what, and against what, it was measured.

use std::process::Command;

use crate::edge::print_load;

/// What a program says of its version: the first word with a digit and a dot in what it prints first.
fn version(program: &str, option: &str) -> String {
    let Ok(output) = Command::new(program).arg(option).output() else { return "not there".to_owned() };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let is_version = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    said.split_whitespace().find(is_version).unwrap_or("of unknown version").to_owned()
}

/// The package that brought ipmi_sim, which has no version of its own.
fn openipmi() -> String {
    let query = ["-W", "-f", "${Version}", "openipmi"];
    let output =
        Command::new("dpkg-query").args(query).output().ok().filter(|output| output.status.success());
    output.map_or("of unknown version".to_owned(), |output| {
        String::from_utf8_lossy(&output.stdout).into_owned()
    })
}

fn line_of(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':').map_or(line, |(_, value)| value).trim().to_owned())
}

/// Says it all, with the caveat.
pub fn print(what: &str, seed: u64) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = line_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let kernel = line_of("/proc/version", "Linux").unwrap_or_default();
    let kernel = kernel.split_whitespace().nth(2).unwrap_or("?").to_owned();
    println!("picket {}, {what}", env!("CARGO_PKG_VERSION"));
    println!("  machine: {cores} x {model}, Linux {kernel}");
    println!(
        "  peers: ipmi_sim (openipmi {}), ipmipower {}, powerman {}",
        openipmi(),
        version("ipmipower", "--version"),
        version("powermand", "-V"),
    );
    println!("  seed of the turns: {seed} (--seed={seed} repeats it)");
    if cfg!(debug_assertions) {
        println!("  NOT A RELEASE BUILD: the times of ours mean nothing");
    }
    print_load("at the start");
    println!(
        "  The BMCs run on this machine too, and take most of its time; other work on it disturbs everybody.\n  \
         All take turns in every round: compare the ratios, not the milliseconds, and not those of another machine."
    );
}
