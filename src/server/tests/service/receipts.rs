//! Receipts through the service: signed, verified, handed back; and whatever is not one of ours.

use picket_core::ids::NodeId;
use picket_core::receipt::MOST_EACH;
use picket_driver_sim::{Act, Fault, Verb};
use picket_proto::v1::{
    GetReceiptRequest, GetReceiptResponse, ListReceiptKeysRequest, Receipt, ReceiptVerdict,
    ReturnReceiptRequest, SignatureAlgorithm, VerifyReceiptRequest,
};
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use serde_json::Value;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::lab::{Lab, lab, named, reason, s, wrong_fields};

fn request() -> GetReceiptRequest {
    GetReceiptRequest { node: named("n1"), audience: "storage".to_owned(), ..Default::default() }
}

async fn get(lab: &Lab, request: GetReceiptRequest) -> Result<GetReceiptResponse, Status> {
    lab.client.clone().get_receipt(request).await.map(tonic::Response::into_inner)
}

async fn got(lab: &Lab) -> Receipt {
    get(lab, request()).await.expect("proven off").receipt.expect("a receipt")
}

fn says(receipt: &Receipt) -> Value {
    serde_json::from_slice(&receipt.body).expect("JSON")
}

fn id(receipt: &Receipt) -> String {
    says(receipt)["id"].as_str().expect("an id").to_owned()
}

async fn verdict(lab: &Lab, receipt: Receipt, fresh: bool) -> (ReceiptVerdict, String) {
    let request = VerifyReceiptRequest { receipt: Some(receipt), fresh };
    let answer = lab.client.clone().verify_receipt(request).await.expect("answered").into_inner();
    assert_eq!(answer.lasts.is_some(), answer.verdict() == ReceiptVerdict::Holds, "{answer:?}");
    (answer.verdict(), answer.detail)
}

async fn back(lab: &Lab, receipt_id: String) -> Result<(), Status> {
    lab.client.clone().return_receipt(ReturnReceiptRequest { receipt_id }).await.map(drop)
}

async fn released() -> Lab {
    let lab = lab().await;
    lab.fence("k1").await;
    lab
}

/// Signed with the gateway's own key, whatever it says.
fn signed(body: &Value) -> Receipt {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("the key of the lab");
    let body = serde_json::to_vec(body).expect("JSON");
    let bytes = [b"picket.v1.Receipt\0".as_slice(), &body].concat();
    let key_id = picket_receipt::KeyId::of(ring::signature::KeyPair::public_key(&pair).as_ref()).to_string();
    let algorithm = SignatureAlgorithm::Ed25519.into();
    Receipt { body, algorithm, key_id, signature: pair.sign(&bytes).as_ref().to_vec() }
}

#[tokio::test(start_paused = true)]
async fn it_is_signed_by_a_listed_key_and_holds_until_it_is_handed_back() {
    let lab = released().await;
    let answer = get(&lab, request()).await.expect("proven off");
    let lasts = answer.lasts.expect("a lease").seconds;
    assert!((59..=60).contains(&lasts), "{lasts}");
    let receipt = answer.receipt.expect("a receipt");
    let body = says(&receipt);
    assert_eq!((body["node"].as_str(), body["audience"].as_str()), (Some("n1"), Some("storage")));
    assert_eq!(body["grade"], "GRADE_OBSERVED");
    let keys = lab.client.clone().list_receipt_keys(ListReceiptKeysRequest {}).await.expect("listed");
    let key = keys.into_inner().keys.remove(0);
    assert_eq!(
        (key.key_id.as_str(), key.gateway.as_str(), key.signs),
        (receipt.key_id.as_str(), "gateway", true)
    );
    let bytes = [b"picket.v1.Receipt\0".as_slice(), &receipt.body].concat();
    UnparsedPublicKey::new(&ED25519, key.public_key).verify(&bytes, &receipt.signature).expect("it fits");

    for fresh in [false, true] {
        let (holds, detail) = verdict(&lab, receipt.clone(), fresh).await;
        assert_eq!(holds, ReceiptVerdict::Holds, "{detail}");
        assert!(detail.contains(body["expiresAt"].as_str().expect("a time")), "{detail}");
    }
    back(&lab, id(&receipt)).await.expect("its own");
    back(&lab, id(&receipt)).await.expect("twice is no error");
    assert_eq!(verdict(&lab, receipt, false).await.0, ReceiptVerdict::Returned);
}

#[tokio::test(start_paused = true)]
async fn renewed_it_names_the_one_that_took_its_place() {
    let lab = released().await;
    let first = got(&lab).await;
    let renews = id(&first);
    let second = get(&lab, GetReceiptRequest { renews, ..request() }).await.expect("renewed");
    let second = second.receipt.expect("a receipt");
    let (returned, detail) = verdict(&lab, first.clone(), false).await;
    assert_eq!(returned, ReceiptVerdict::Returned);
    assert!(detail.contains(&id(&second)), "{detail}");
    let again = get(&lab, GetReceiptRequest { renews: id(&first), ..request() }).await.expect_err("once");
    assert_eq!(reason(&again).0, "RECEIPT_NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn expired_it_says_so_also_when_nothing_is_kept_of_it() {
    let lab = released().await;
    let receipt = got(&lab).await;
    tokio::time::sleep(s(60)).await;
    assert_eq!(verdict(&lab, receipt.clone(), false).await.0, ReceiptVerdict::Expired);
    tokio::time::sleep(s(60)).await;
    let (expired, detail) = verdict(&lab, receipt.clone(), false).await;
    assert_eq!(expired, ReceiptVerdict::Expired, "{detail}");
    assert_eq!(reason(&back(&lab, id(&receipt)).await.expect_err("gone")).0, "RECEIPT_NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn a_breach_and_an_unfence_make_it_void() {
    let lab = released().await;
    let receipt = got(&lab).await;
    lab.happen(Act::Foreign { machine: "n1".to_owned(), verb: Verb::On });
    while !lab.is_on("n1") {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let (void, detail) = verdict(&lab, receipt, true).await;
    assert_eq!(void, ReceiptVerdict::Void, "{detail}");
    assert!(detail.contains("found on"), "{detail}");

    let lab = released().await;
    let receipt = got(&lab).await;
    let unfencing = lab.back(crate::lab::unfence_request("k2")).await.expect("let in");
    lab.reach("unfencing").await;
    assert_eq!(verdict(&lab, receipt.clone(), false).await.0, ReceiptVerdict::Void);
    let waits = unfencing.all().await;
    let told =
        waits.iter().filter_map(|update| update.wait.as_ref()).any(|wait| wait.what.contains(&id(&receipt)));
    assert!(told, "whoever waits is told for what: {waits:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_forged_one_is_not_ours_and_says_why() {
    let lab = released().await;
    let right = got(&lab).await;
    let body = |from: &str, to: &str| {
        let text = String::from_utf8(right.body.clone()).expect("text").replace(from, to);
        Receipt { body: text.into_bytes(), ..right.clone() }
    };
    let changed = Receipt { signature: right.signature.iter().rev().copied().collect(), ..right.clone() };
    for (forged, why) in [
        (body("\"n1\"", "\"n2\""), "the signature does not fit"),
        (body("storage", "anybody"), "the signature does not fit"),
        (changed, "the signature does not fit"),
        (Receipt { key_id: "00".repeat(16), ..right.clone() }, "which is none of the gateway's"),
        (Receipt { algorithm: 0, ..right.clone() }, "not said to be signed with Ed25519"),
        (Receipt { algorithm: 77, ..right.clone() }, "not said to be signed with Ed25519"),
        (Receipt { body: Vec::new(), ..right.clone() }, "the signature does not fit"),
        (signed(&serde_json::json!({ "id": "x" })), "cannot be read"),
    ] {
        let (verdict, detail) = verdict(&lab, forged, true).await;
        assert_eq!(verdict, ReceiptVerdict::NotOurs, "{detail}");
        assert!(detail.contains(why), "{detail}");
    }
    assert_eq!(verdict(&lab, right, false).await.0, ReceiptVerdict::Holds);
}

#[tokio::test(start_paused = true)]
async fn one_of_another_life_of_the_store_of_another_node_or_that_never_was_does_not_hold() {
    let lab = released().await;
    let body = says(&got(&lab).await);
    let with = |field: &str, value: &str| {
        let mut body = body.clone();
        body[field] = value.into();
        signed(&body)
    };
    let other = "019aa53b-3f0a-7707-8707-070707070707";
    let (verdict_, detail) = verdict(&lab, with("incarnation", other), false).await;
    assert_eq!(verdict_, ReceiptVerdict::NotOurs);
    assert!(detail.contains("another life of the store") && detail.contains(other), "{detail}");
    let (verdict_, detail) = verdict(&lab, with("id", other), false).await;
    assert_eq!(verdict_, ReceiptVerdict::Void, "{detail}");
    assert_eq!(verdict(&lab, with("node", "n2"), false).await.0, ReceiptVerdict::Void);
    let (verdict_, detail) = verdict(&lab, with("node", "gone"), false).await;
    assert_eq!(verdict_, ReceiptVerdict::Void);
    assert!(detail.contains("no node \"gone\" any more"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn bad_requests_are_told_with_their_fields() {
    let lab = lab().await;
    let bad = GetReceiptRequest {
        node: None,
        fence_id: "x".to_owned(),
        renews: "y".repeat(200),
        audience: "a\nb".to_owned(),
    };
    let refused = get(&lab, bad).await.expect_err("refused");
    assert_eq!(wrong_fields(&refused), ["node", "fence_id", "renews", "audience"]);
    let long = GetReceiptRequest { audience: "a".repeat(254), ..request() };
    assert_eq!(wrong_fields(&get(&lab, long).await.expect_err("refused")), ["audience"]);
    for text in ["", "x"] {
        let refused = back(&lab, text.to_owned()).await.expect_err("refused");
        assert_eq!(wrong_fields(&refused), ["receipt_id"]);
    }
    let nothing = VerifyReceiptRequest { receipt: None, fresh: false };
    let refused = lab.client.clone().verify_receipt(nothing).await.expect_err("refused");
    assert_eq!(wrong_fields(&refused), ["receipt"]);
    let unknown = "019aa53b-3f0a-7707-8707-070707070707".to_owned();
    let refused = back(&lab, unknown).await.expect_err("refused");
    assert_eq!((refused.code(), reason(&refused).0.as_str()), (Code::NotFound, "RECEIPT_NOT_FOUND"));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_proven_off_has_none() {
    let lab = lab().await;
    let not_proven = |refused: Status, words: &str| {
        assert_eq!((refused.code(), reason(&refused).0.as_str()), (Code::FailedPrecondition, "NOT_PROVEN"));
        assert!(refused.message().contains(words), "{}", refused.message());
    };
    not_proven(get(&lab, request()).await.expect_err("it is on"), "it is normal: fence it first");
    lab.fence("k1").await;
    let fence_id = "019aa53b-3f0a-7707-8707-070707070707".to_owned();
    let other = GetReceiptRequest { fence_id, ..request() };
    not_proven(get(&lab, other).await.expect_err("another fence"), "is not its present one");
    lab.fault("n1-bmc", Fault::Silent);
    not_proven(get(&lab, request()).await.expect_err("silent"), "bmc was not looked at");
}

#[tokio::test(start_paused = true)]
async fn one_caller_has_so_many_and_is_told_when_there_is_room() {
    let lab = released().await;
    for _ in 0..MOST_EACH {
        got(&lab).await;
    }
    let refused = get(&lab, request()).await.expect_err("full");
    let (word, metadata) = reason(&refused);
    assert_eq!((refused.code(), word.as_str()), (Code::ResourceExhausted, "LIMIT"));
    assert_eq!(metadata["limit"], "receipts_each");
    let details = refused.get_error_details();
    let again = details.retry_info().and_then(|info| info.retry_delay).expect("when");
    assert!(again > s(30) && again <= s(66), "{again:?}");
    assert_eq!(details.quota_failure().map(|quota| quota.violations.len()), Some(1));
}

#[tokio::test(start_paused = true)]
async fn another_s_receipt_is_not_handed_back_or_renewed_by_whoever_may_do_all_else() {
    let lab = released().await;
    let node = NodeId::new("n1").expect("a good name");
    let call = picket_engine::ReceiptCall {
        by: "db".to_owned(),
        fence: None,
        renews: None,
        audience: String::new(),
    };
    let theirs = lab.engine.receipt(&node, call).await.expect("proven off").id.to_string();
    // The caller of the lab is admin.
    for refused in [
        back(&lab, theirs.clone()).await.expect_err("refused"),
        get(&lab, GetReceiptRequest { renews: theirs, ..request() }).await.map(drop).expect_err("refused"),
    ] {
        let (word, metadata) = reason(&refused);
        assert_eq!((refused.code(), word.as_str()), (Code::PermissionDenied, "HOLDER_NOT_ALLOWED"));
        assert_eq!(metadata["holder"], "db");
        assert!(refused.message().contains("nobody else"), "{}", refused.message());
    }
}
