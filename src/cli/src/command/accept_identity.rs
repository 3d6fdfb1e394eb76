//! `picket accept-identity`: accept what a device says it is, after a board was exchanged.

use picket_proto::v1::AcceptIdentityRequest;

use super::calls;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;
use crate::{hosts, question};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The node
    #[arg(value_name = "NODE")]
    node: String,
    /// Its device: `picket status` shows them
    #[arg(value_name = "DEVICE")]
    device: String,
    /// What was exchanged, and why it is right
    #[arg(long, required = true, value_name = "TEXT")]
    reason: String,
    /// The UUID that you expect; another one is refused [default: whatever it says]
    #[arg(long, value_name = "UUID")]
    uuid: Option<String>,
    /// The serial number that you expect; another one is refused [default: whatever it says]
    #[arg(long, value_name = "SERIAL")]
    serial: Option<String>,
}

/// Asks the device now, and accepts what it says.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let nodes = hosts::resolve(session, std::slice::from_ref(&args.node)).await?;
    let [node] = nodes.as_slice() else {
        return Err(Fault::Usage("an identity is of one device: name one node".to_owned()));
    };
    if node.devices.iter().all(|device| device.id != args.device) {
        let known: Vec<&str> = node.devices.iter().map(|device| device.id.as_str()).collect();
        let message = format!("{} has no device {:?}; it has: {}", node.name, args.device, known.join(", "));
        return Err(Fault::Usage(message));
    }
    if args.uuid.is_none() && args.serial.is_none() {
        let asked = format!(
            "Accept whatever {} of {} says that it controls? If it is not the machine that you mean, the next fence switches \
             off another one.",
            args.device, node.name
        );
        question::ask(session.console, session.global.yes, &asked).await?;
    }
    let request = AcceptIdentityRequest {
        node: Some(hosts::selector(&node.name)),
        device: args.device.clone(),
        reason: args.reason.clone(),
        uuid: args.uuid.clone().unwrap_or_default(),
        serial: args.serial.clone().unwrap_or_default(),
    };
    let mut client = session.client.clone();
    let answer = calls::one(session, client.accept_identity(request), |answer| answer.node).await?;
    let said = answer.as_ref().ok().and_then(|now| now.devices.iter().find(|one| one.id == args.device));
    let said = said.and_then(|device| device.expected_identity.clone()).unwrap_or_default();
    let words: Vec<String> = [("uuid", said.uuid), ("serial", said.serial)]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let done = format!("{} accepted as {}", args.device, words.join(", "));
    calls::tell(session, &vec![(node.name.clone(), answer)], &done)
}
