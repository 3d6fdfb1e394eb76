//! `picket init`: the settings of a first node, tried before they are written.
//!
//! # Invariants
//!
//! - Nothing that changes a machine is sent: `picketd probe` alone asks the BMC, and its calls may only
//!   read. Shown by `a_device_is_asked_by_calls_that_may_only_read`.
//! - What a BMC says of itself is not written as if a person had said it (S13): its identity stands in the
//!   settings as a remark. Shown by `an_identity_is_written_as_a_remark_alone`.
//! - No weaker cipher suite and no certificate is accepted by a word that anybody on the way may have said:
//!   each wants a flag. Shown by `suite_3_is_spoken_where_a_person_allowed_it_alone`,
//!   `a_certificate_that_nobody_vouches_for_wants_a_person`.
//! - No file is overwritten without `--force`, and the password stands in its own file alone. Shown by
//!   `what_is_there_is_overwritten_by_force_alone`.

mod ask;
mod draft;
mod node_request;
mod probe;
mod settings;
mod settings_folder;

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::global::{Format, Global};
use crate::programs;
use crate::style::{Page, Tone};
use node_request::{Driver, NodeRequest};
use probe::ProbeResult;

/// Its arguments. What is missing is asked for on a terminal.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The node's name: 1 to 253 letters, digits, '-', '_' or '.'
    #[arg(value_name = "NODE")]
    node: Option<String>,
    /// Name or address of its BMC
    #[arg(long, value_name = "HOST")]
    address: Option<String>,
    /// The BMC's user
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The file with that user's password, which nobody else may read; on a terminal one that is not there is made, last of all
    /// beside the settings [default: bmc.password in --dir]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The driver [default: both are tried, and ipmi is taken where both work]
    #[arg(long, value_enum, value_name = "DRIVER")]
    driver: Option<Driver>,
    /// The port at which the BMC answers [default: 623 for ipmi, 443 for redfish]
    #[arg(long, value_name = "PORT", requires = "driver", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Of ipmi: also speak cipher suite 3, to a BMC that has no 17
    #[arg(long)]
    allow_suite_3: bool,
    /// Of redfish: the CA of the BMC's certificate, or that certificate itself
    #[arg(long, value_name = "FILE")]
    bmc_ca: Option<PathBuf>,
    /// Of redfish: the SHA-256 of the BMC's certificate, 64 hexadecimal digits
    #[arg(long, value_name = "DIGEST", conflicts_with = "bmc_ca")]
    bmc_certificate: Option<String>,
    /// Of redfish: the id of the system, where the BMC has several
    #[arg(long, value_name = "ID")]
    system: Option<String>,
    /// Where the settings go, as picket.toml
    #[arg(long, value_name = "DIR", default_value = settings_folder::DEFAULT)]
    dir: PathBuf,
    /// Overwrite a picket.toml that is there
    #[arg(long)]
    force: bool,
    /// Try the BMC and print the settings; write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Asks, tries, writes.
pub async fn run(args: &Args, global: &Global, console: &mut Console) -> Result<Exit, Fault> {
    let picketd = programs::find("picketd")?;
    let settings_folder = settings_folder::SettingsFolder::of(&args.dir, args.force || args.dry_run)?;
    let request = ask::request(args, &settings_folder, console).await?;
    let mut tried = Vec::new();
    for driver in args.driver.map_or_else(|| vec![Driver::Ipmi, Driver::Redfish], |one| vec![one]) {
        say(
            console,
            &format!("Asking {} over {driver}; nothing is sent but questions ...", request.address),
        )?;
        let one = probe::try_one(&picketd, &request, driver).await?;
        if global.output == Format::Table {
            let page = console.page(Stream::Out);
            console.write(Stream::Out, &one.told(page))?;
        }
        tried.push(one);
    }
    // Sessions of IPMI bound how late a command may land by a minute, those of Redfish by half an hour as a rule.
    let Some(chosen) = tried.iter().find(|one| one.is_ready()) else {
        let again =
            again(args, &request, &settings_folder, tried.iter().find_map(|one| one.more_words(&request)));
        return Err(Fault::Failed(unready(&tried, &request) + &again));
    };
    let text = settings::text(&request, chosen, &settings_folder);
    let file = settings_folder.file();
    if !args.dry_run {
        settings_folder
            .write(&text, request.is_new.then_some((&*request.password_file, &*request.password)))?;
    }
    match global.output {
        Format::Table => {
            let page = console.page(Stream::Out);
            let told = match args.dry_run {
                true => format!("\n# {} would be:\n{text}", file.display()),
                false => {
                    let wrote = page.text(Tone::Plain, &format!("Wrote {}.", file.display()));
                    format!("\n{wrote}{}", next(&request, &settings_folder, page))
                }
            };
            console.write(Stream::Out, &told)?;
        }
        Format::Json | Format::Yaml => {
            let all: Vec<_> = tried.iter().map(ProbeResult::document).collect();
            console.document(&json!({
                "file": file, "written": !args.dry_run, "settings": text, "driver": chosen.driver.to_string(), "tried": all,
            }))?;
        }
    }
    Ok(Exit::Done)
}

/// What goes on, for people who wait.
fn say(console: &mut Console, text: &str) -> Result<(), Fault> {
    let text = console.page(Stream::Err).text(Tone::Faint, text);
    Ok(console.write(Stream::Err, &text)?)
}

/// Why nothing was written, with the device's own reasons and what to do.
fn unready(tried: &[ProbeResult], request: &NodeRequest) -> String {
    let each = tried.iter().map(|one| format!("{}: {}\n{}", one.driver, one.reason(), one.advice(request)));
    let each: Vec<String> = each.collect();
    format!("the BMC of {} could not be used, and nothing was written\n{}", request.node, each.join("\n"))
}

/// The same command with all that was answered, but for a password; `more`: what the BMC wants besides.
fn again(
    args: &Args,
    request: &NodeRequest,
    settings_folder: &settings_folder::SettingsFolder,
    more: Option<String>,
) -> String {
    let mut words = vec![request.node.clone(), "--address".to_owned(), request.address.clone()];
    let mut add = |flag: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([flag.to_owned(), value]);
        }
    };
    let path = |path: &PathBuf| path.display().to_string();
    add("--user", Some(request.user.clone()));
    let is_default = request.password_file == settings_folder.password_file();
    add("--password-file", (!is_default).then(|| path(&request.password_file)));
    add("--driver", args.driver.map(|driver| driver.to_string()));
    add("--port", request.port.map(|port| port.to_string()));
    add("--bmc-ca", request.ca.as_ref().map(path));
    add("--bmc-certificate", request.certificate.clone());
    add("--system", request.system.clone());
    add("--dir", (args.dir != Path::new(settings_folder::DEFAULT)).then(|| path(&args.dir)));
    let flags =
        [(request.allow_suite_3, "--allow-suite-3"), (args.force, "--force"), (args.dry_run, "--dry-run")];
    words.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| (*flag).to_owned()));
    let typed: Vec<String> = words.iter().map(|word| typed(word)).collect();
    let (label, more) = match more {
        Some(more) => ("With that", format!(" {more}")),
        None => ("The same command", String::new()),
    };
    format!("\n{label}: picket init {}{more}", typed.join(" "))
}

/// A word as a shell takes it.
fn typed(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// What to type next.
fn next(request: &NodeRequest, settings_folder: &settings_folder::SettingsFolder, page: Page) -> String {
    let node = &request.node;
    let (as_whom, config, endpoint) = settings_folder.commands();
    let lines = [
        format!("{as_whom}picketd{config} --check"),
        settings_folder.start(),
        format!("{as_whom}picket{endpoint} check {node}"),
        format!("# The next one switches {node} off."),
        format!("{as_whom}picket{endpoint} fence {node} --reason \"a first fence\""),
    ];
    let lines = lines.iter().map(|line| page.command(2, line));
    format!("\nNext:\n{}", lines.collect::<String>())
}
