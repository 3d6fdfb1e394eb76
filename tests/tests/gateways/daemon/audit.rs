//! The audit of the real daemon: complete, whole, and whoever changed it is found.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use picket_proto::v1::{GetFenceRequest, ListFencesRequest};
use picket_tests::{Gateway, Result, Said};
use serde_json::Value;

use crate::daemon::one_node;

/// The files of its audit, oldest first.
fn files(gateway: &Gateway) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory(gateway))
        .expect("there is an audit")
        .map(|entry| entry.expect("read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    files
}

fn directory(gateway: &Gateway) -> PathBuf {
    gateway.store_file().with_extension("audit")
}

async fn history(gateway: &Gateway, arguments: &[&str]) -> Result<Said> {
    let place = directory(gateway).display().to_string();
    gateway.picket(&[&["history", "--audit", &place], arguments].concat()).await
}

async fn exported(gateway: &Gateway) -> Result<Vec<Value>> {
    let said = history(gateway, &["--export"]).await?;
    assert_eq!(said.code, 0, "{said:?}");
    Ok(said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

fn of<'a>(entries: &'a [Value], what: &str) -> Vec<&'a Value> {
    entries.iter().filter(|entry| entry["what"] == what).collect()
}

async fn fence_and_unfence(gateway: &Gateway) -> Result<()> {
    for verb in ["fence", "unfence"] {
        let said = gateway.picket(&[verb, "n1", "--yes", "--reason", "disk errors"]).await?;
        assert_eq!(said.code, 0, "{said:?}\n{}", gateway.log());
    }
    Ok(())
}

#[tokio::test]
async fn a_fence_is_in_it_from_its_request_to_its_end_and_the_chain_is_whole() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    fence_and_unfence(&gateway).await?;
    let refused = gateway.picket(&["retry", "n1", "--yes", "--reason", "again"]).await?;
    assert_eq!(refused.code, 8, "{refused:?}");
    let mut client = gateway.client().await?;
    let fences = client.list_fences(ListFencesRequest::default()).await.expect("answered").into_inner();
    let id = fences.fences[0].id.clone();
    let whole = client.get_fence(GetFenceRequest { fence_id: id.clone(), view: 0 }).await.expect("answered");
    let fence = whole.into_inner().fence.expect("a fence");

    let entries = exported(&gateway).await?;
    let requests: Vec<(&str, &str)> = of(&entries, "request")
        .iter()
        .map(|entry| {
            let word = |key: &str| entry["details"][key].as_str().expect("a word");
            assert!(entry["who"].as_str().is_some_and(|who| who.starts_with("uid:")), "{entry}");
            assert!(["disk errors", "again"].contains(&word("reason")), "{entry}");
            (word("call"), word("outcome"))
        })
        .collect();
    assert_eq!(requests, [("fence", "accepted"), ("unfence", "accepted"), ("retry", "refused")]);
    let phases: Vec<&str> =
        of(&entries, "phase").iter().map(|entry| entry["details"]["to"].as_str().expect("a word")).collect();
    assert_eq!(phases, ["fencing", "fenced", "released", "unfencing", "normal"], "{entries:#?}");
    let words: BTreeSet<&str> =
        of(&entries, "exchange").iter().filter_map(|entry| entry["details"]["asked"].as_str()).collect();
    for asked in ["what machine is it", "is it on or off", "stay off", "power off, hard", "power on"] {
        assert!(words.contains(asked), "{asked} is not in {words:?}");
    }
    // The same of the wire.
    let told: BTreeSet<&str> = fence.exchanges.iter().map(|exchange| exchange.asked.as_str()).collect();
    assert!(told.contains("power off, hard") && told.contains("power on"), "{:#?}", fence.exchanges);
    assert!(fence.exchanges.iter().all(|exchange| exchange.device == "bmc" && exchange.took.is_some()));
    assert!(fence.audit_head.is_some_and(|head| head.seq > 10 && head.hash.len() == 64));

    let verified = history(&gateway, &["--verify"]).await?;
    assert!(
        verified.code == 0 && verified.out.contains("fences that you may see (1): all fit"),
        "{verified:?}"
    );
    assert!(gateway.stop().await?.success(), "{}", gateway.log());
    gateway.begin(&[]).await?;
    let verified = history(&gateway, &["--verify"]).await?;
    assert_eq!(verified.code, 0, "over two processes: {verified:?}");
    let entries = exported(&gateway).await?;
    assert_eq!((of(&entries, "start").len(), of(&entries, "stop").len()), (2, 1));
    Ok(())
}

/// Changes the one file of an audit, and says what the verification says of it.
async fn changed(gateway: &Gateway, change: impl FnOnce(&mut Vec<String>)) -> Result<Said> {
    let file = files(gateway).remove(0);
    let before = fs::read_to_string(&file).expect("text");
    let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(&file, lines.join("\n") + "\n").expect("written");
    let said = history(gateway, &["--verify"]).await;
    fs::write(&file, before).expect("written");
    said
}

#[tokio::test]
async fn a_byte_that_was_changed_is_found_and_so_is_an_end_that_was_cut_off() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let gateway = Gateway::start(&fleet).await?;
    fence_and_unfence(&gateway).await?;
    assert_eq!(history(&gateway, &["--verify"]).await?.code, 0);

    let word = changed(&gateway, |lines| {
        let at = lines.iter().position(|line| line.contains("disk errors")).expect("the request");
        lines[at] = lines[at].replace("disk errors", "dusk errors");
    })
    .await?;
    assert!(
        word.code == 1 && word.err.contains("it was changed") && word.err.contains(".jsonl, line "),
        "{word:?}"
    );
    let removed = changed(&gateway, |lines| drop(lines.remove(4))).await?;
    assert!(removed.code == 1 && removed.err.contains("line 5: entry 6 follows entry 4"), "{removed:?}");
    let cut = changed(&gateway, |lines| lines.truncate(8)).await?;
    assert!(cut.code == 1 && cut.err.contains("its end was cut off"), "{cut:?}");
    let offline = history(&gateway, &["--verify", "--offline"]).await?;
    assert!(offline.code == 0 && offline.out.contains("would not be seen"), "{offline:?}");
    Ok(())
}

#[tokio::test]
async fn killed_at_any_moment_the_chain_goes_on() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::start(&fleet).await?;
    let fenced = gateway.picket(&["fence", "n1", "--yes", "--reason", "disk errors"]).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}");
    gateway.kill();
    // As if the last write had come to the disk in part.
    let file = files(&gateway).remove(0);
    let mut text = fs::read(&file).expect("text");
    text.extend_from_slice(b"{\"v\":1,\"seq\":99");
    fs::write(&file, text).expect("written");
    gateway.begin(&[]).await?;
    gateway.picket(&["unfence", "n1", "--yes", "--reason", "disk errors"]).await?;
    let verified = history(&gateway, &["--verify"]).await?;
    assert!(verified.code == 0 && verified.out.contains("cut off before it, in a crash"), "{verified:?}");
    assert!(verified.out.contains("1 times a gateway began where the one before was killed"), "{verified:?}");
    assert!(gateway.log().contains("in the middle of a line"), "{}", gateway.log());
    Ok(())
}
