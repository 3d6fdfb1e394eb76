//! `picket receipt keys`: the public keys by which receipts are verified.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use picket_proto::v1::{ListReceiptKeysRequest, ReceiptKey};
use picket_receipt::{ListedKey, PublicKeys};
use serde::{Deserialize, Serialize};

use super::file;
use crate::console::Stream;
use crate::duration;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;
use crate::style::Tone;
use crate::table::{Cell, Table};

#[derive(Serialize)]
struct Keys {
    keys: Vec<KeyView>,
}

#[derive(Deserialize)]
struct KeysFile {
    keys: Vec<ListedKey>,
}

#[derive(Serialize)]
struct KeyView {
    #[serde(flatten)]
    key: ListedKey,
    signs: bool,
}

fn listed(key: &ReceiptKey) -> ListedKey {
    ListedKey {
        key_id: key.key_id.clone(),
        algorithm: key.algorithm().as_str_name().to_owned(),
        public_key: STANDARD.encode(&key.public_key),
        gateway: key.gateway.clone(),
        since: key.since.as_ref().map(duration::stamp).unwrap_or_default(),
    }
}

/// Lists them.
pub async fn run(session: &mut Session<'_>) -> Result<Exit, Fault> {
    let mut client = session.client.clone();
    let answer = session.asked(client.list_receipt_keys(ListReceiptKeysRequest {})).await?.into_inner();
    if !session.for_people() {
        let keys = answer.keys.iter().map(|key| KeyView { key: listed(key), signs: key.signs }).collect();
        session.console.document(&Keys { keys })?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["KEY", "GATEWAY", "SINCE", "SIGNS"]);
    for key in &answer.keys {
        let signs = if key.signs { Cell::new(Tone::Good, "yes") } else { Cell::new(Tone::Faint, "no") };
        let since = key.since.as_ref().map(duration::stamp_seconds).unwrap_or_default();
        table.row(vec![key.key_id.as_str().into(), key.gateway.as_str().into(), since.into(), signs]);
    }
    let text = table.render(session.console.page(Stream::Out));
    session.console.write(Stream::Out, &text)?;
    Ok(Exit::Done)
}

/// Reads a file with keys.
pub fn read(path: &Path) -> Result<PublicKeys, Fault> {
    let wrong = |why: String| {
        Fault::Usage(format!(
            "{} has no keys: {why}; wanted is what `picket receipt keys -o json` writes",
            path.display()
        ))
    };
    // Who writes the keys may sign that a running node is off.
    picket_permissions::check_if_there(path)
        .map_err(|fault| Fault::Usage(format!("{}: {fault}", path.display())))?;
    let file: KeysFile =
        serde_json::from_str(&file::text(path)?).map_err(|error| wrong(error.to_string()))?;
    PublicKeys::of(&file.keys).map_err(wrong)
}
