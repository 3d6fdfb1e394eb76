//! `picket pki`: keys and certificates for a first installation.

use std::path::PathBuf;

use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::global::Format;
use crate::pki::{CreatedFiles, PkiRequest};
use crate::style::{Page, Tone};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a small CA, a certificate for the gateway, and one for each caller; nothing that is there is overwritten
    Init(Init),
}

#[derive(Debug, clap::Args)]
struct Init {
    /// Where to; the keys in it are for its owner alone
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// A name or an address by which callers reach the gateway; several times for several
    #[arg(long, required = true, value_name = "NAME")]
    server: Vec<String>,
    /// A caller, by host name, e-mail address or SPIFFE id; several times for several
    #[arg(long, required = true, value_name = "NAME")]
    client: Vec<String>,
    /// For how long the certificates hold; that of the CA holds for ten years
    #[arg(long, value_name = "DAYS", default_value = "365", value_parser = clap::value_parser!(u16).range(1..=3650))]
    days: u16,
}

/// Makes them, and says what to put into the settings.
pub fn run(args: &Args, format: Format, console: &mut Console) -> Result<Exit, Fault> {
    let Command::Init(init) = &args.command;
    let order = PkiRequest {
        directory: &init.directory,
        servers: &init.server,
        clients: &init.client,
        days: init.days,
    };
    let made = order.make().map_err(Fault::Usage)?;
    match format {
        Format::Table => console.write(Stream::Out, &told(&made, console.page(Stream::Out)))?,
        Format::Json | Format::Yaml => console.document(&made)?,
    }
    Ok(Exit::Done)
}

/// Sentences fit the page. What is to be pasted stands as it is, in lines as short as its paths allow.
fn told(made: &CreatedFiles, page: Page) -> String {
    let text = |text: &str| page.text(Tone::Plain, text);
    let callers: Vec<String> = made.clients.iter().map(|client| format!("{:?}", client.name)).collect();
    let first = made.clients.first();
    let (certificate, key) = first.map_or(("", ""), |client| (&client.cert_file, &client.key_file));
    format!(
        "{head}\n\
         {settings}\n\
         [listen]\n\
         # With tcp alone there would be no socket.\n\
         unix = \"/run/picket/picket.sock\"\n\
         tcp = \"0.0.0.0:7070\"\n\n\
         [listen.tls]\n\
         cert_file = {server:?}\n\
         key_file = {server_key:?}\n\
         client_ca_file = {ca:?}\n\n\
         # Root of the gateway's own machine, over the socket.\n\
         [roles.root]\n\
         role = \"admin\"\n\
         uids = [0]\n\n\
         # A role is viewer, controller, operator, admin or attest.\n\
         [roles.operators]\n\
         role = \"operator\"\n\
         callers = [{callers}]\n\n\
         {contexts}\n\
         current = \"gateway\"\n\n\
         [contexts.gateway]\n\
         endpoint = \"https://{name}:7070\"\n\
         ca_file = {ca:?}\n\
         cert_file = {certificate:?}\n\
         key_file = {key:?}\n",
        head = text(&format!(
            "Made in {}; keep {} elsewhere, it is only for further certificates.",
            made.directory, made.ca_key_file
        )),
        settings =
            text("Into a file of its own beside the gateway's settings (/etc/picket/conf.d/tls.toml):"),
        contexts = text("Into a caller's file with contexts (~/.config/picket/config.toml):"),
        server = made.cert_file,
        server_key = made.key_file,
        ca = made.ca_file,
        callers = callers.join(", "),
        name = made.server,
    )
}
