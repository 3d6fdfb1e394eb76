//! The log: whoever has a fence's id finds all of it.

use picket_proto::v1::ListFencesRequest;
use picket_tests::{Gateway, Result};
use serde_json::Value;

use crate::daemon::one_node;

/// All texts in a line of the log, at any depth.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(values) => values.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn every_line_of_a_fence_and_its_unfence_has_the_fences_id() -> Result<()> {
    let (bmc, _webhook, fleet) = one_node().await?;
    let gateway = Gateway::start(&fleet.with("[log]\nformat = \"json\"\nlevel = \"debug\"")).await?;
    gateway.checked().await?;
    let before = gateway.log().lines().count();
    for (verb, on) in [("fence", false), ("unfence", true)] {
        let said = gateway.picket(&[verb, "n1", "--yes", "--reason", "a test"]).await?;
        assert_eq!((said.code, bmc.is_on()?), (0, on), "{said:?}");
    }
    let fences = gateway.client().await?.list_fences(ListFencesRequest::default()).await.expect("answered");
    let id = fences.into_inner().fences.remove(0).id;

    let log = gateway.log();
    let lines: Vec<Value> = log
        .lines()
        .skip(before)
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let message = |line: &Value| line["fields"]["message"].as_str().unwrap_or_default().to_owned();
    let moved = |to: &'static str| move |line: &Value| line["fields"]["to"] == to;
    let began = lines.iter().position(moved("fencing")).expect("it is logged");
    let ended = lines.iter().position(moved("normal")).expect("it is logged");

    // What speaks of the node names it, or where its BMC or its release is.
    let place = bmc.address().to_string();
    let speaks = |line: &&Value| {
        texts(line).iter().any(|text| *text == "n1" || text.contains(&place) || text.contains("detach"))
    };
    let spoken: Vec<&Value> = lines[began..=ended].iter().filter(speaks).collect();
    for line in &spoken {
        assert!(texts(line).iter().any(|text| text.contains(&id)), "without {id}: {line:#}");
    }
    // What the engine says within the fence has the node and its generation beside it.
    let of_engine =
        |line: &&&Value| line["target"].as_str().is_some_and(|at| at.starts_with("picket_engine"));
    for line in spoken.iter().filter(of_engine) {
        for key in ["node", "generation"] {
            let stands = [&line["fields"], &line["span"]].iter().any(|at| !at[key].is_null());
            assert!(stands, "without {key}: {line:#}");
        }
    }
    // They are sentences, and those that an operator looks for are among them.
    let messages: Vec<String> = spoken.iter().map(|line| message(line)).collect();
    for wanted in [
        "the request for a fence was admitted",
        "the node moved to another phase",
        "the off was taken",
        "the node is confirmed off",
        "webhook answered",
        "a person asks",
        "the on was taken",
    ] {
        assert!(messages.iter().any(|said| said == wanted), "no {wanted:?} in {messages:#?}");
    }
    for line in
        spoken.iter().filter(|line| line["target"].as_str().is_some_and(|at| at.starts_with("picket")))
    {
        assert!(message(line).contains(' '), "a bare word: {line:#}");
    }
    Ok(())
}

#[tokio::test]
async fn in_text_each_line_of_a_fence_has_node_fence_and_generation_too() -> Result<()> {
    let (bmc, _webhook, fleet) = one_node().await?;
    let gateway = Gateway::start(&fleet.with("[log]\nformat = \"text\"\nlevel = \"debug\"")).await?;
    gateway.checked().await?;
    let before = gateway.log().lines().count();
    let said = gateway.picket(&["fence", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!((said.code, bmc.is_on()?), (0, false), "{said:?}");
    let fences = gateway.client().await?.list_fences(ListFencesRequest::default()).await.expect("answered");
    let id = fences.into_inner().fences.remove(0).id;
    let log = gateway.log();
    let lines: Vec<&str> = log.lines().skip(before).collect();
    let moved = |to: &str| {
        lines.iter().position(|line| line.contains(&format!("to=\"{to}\""))).expect("it is logged")
    };
    let of_engine =
        lines[moved("fencing")..=moved("released")].iter().filter(|line| line.contains("picket_engine"));
    let mut count = 0;
    for line in of_engine {
        assert!(line.contains("node=n1") && line.contains("generation=1") && line.contains(&id), "{line}");
        count += 1;
    }
    assert!(count > 5, "{log}");
    Ok(())
}
