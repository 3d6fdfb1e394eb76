//! A command that fails as a whole: scripts get a document of it, people the words, and the exit code stays what it is.

use crate::common::gateway::{Gateway, Script};
use crate::common::make::node;
use crate::common::{Ran, ask, golden, picket, run};
use picket_proto::DOMAIN;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

async fn fleet() -> Gateway {
    Gateway::start(Script { nodes: vec![node("r1n07")], ..Default::default() }).await
}

fn document(ran: &Ran) -> Value {
    let document: Value = serde_json::from_str(&ran.out).expect("one document of JSON");
    assert_eq!(document["exit_code"], ran.code, "{ran:?}");
    assert!(ran.err.starts_with("picket: "), "people are told as well: {ran:?}");
    document["error"].clone()
}

#[tokio::test]
async fn a_node_that_is_not_there_is_a_document_too() {
    let gateway = fleet().await;
    let ran = ask(&gateway, "status r1n7 -o json").await;
    assert_eq!(ran.code, 6, "{ran:?}");
    golden("failed.json", &ran.out);
    let error = document(&ran);
    assert_eq!(
        (error["code"].as_str(), error["reason"].as_str()),
        (Some("not_found"), Some("NODE_NOT_FOUND"))
    );
    let yaml = ask(&gateway, "nodes r1n7 -o yaml").await;
    assert_eq!(yaml.code, 6, "{yaml:?}");
    golden("failed.yaml", &yaml.out);
    let people = ask(&gateway, "status r1n7").await;
    assert_eq!((people.code, people.out.as_str()), (6, ""), "people get words alone");
}

#[tokio::test]
async fn what_is_denied_says_which_role_would_do_and_a_limit_when_to_ask_again() {
    let gateway = fleet().await;
    let mut details = ErrorDetails::new();
    details.set_error_info("ROLE_MISSING", DOMAIN, [("role".to_owned(), "viewer".to_owned())]);
    gateway.script().unlisted =
        Some(Status::with_error_details(Code::PermissionDenied, "you have no role here", details));
    let denied = ask(&gateway, "nodes -o json").await;
    assert_eq!(denied.code, 7, "{denied:?}");
    let error = document(&denied);
    assert_eq!(error["metadata"]["role"], "viewer");
    assert_eq!(error["details"][0], "the role viewer would do");

    let mut details = ErrorDetails::new();
    details
        .set_error_info("LIMIT", DOMAIN, [("limit".to_owned(), "50 requests a second".to_owned())])
        .set_retry_info(Some(std::time::Duration::from_millis(1_500)));
    gateway.script().unlisted =
        Some(Status::with_error_details(Code::ResourceExhausted, "too many", details));
    let limited = ask(&gateway, "fence r1n07 --yes -o json").await;
    assert_eq!(limited.code, 3, "{limited:?}");
    let error = document(&limited);
    assert_eq!(
        (&error["retry_after_s"], &error["metadata"]["limit"]),
        (&1.5.into(), &"50 requests a second".into())
    );
}

#[tokio::test]
async fn what_arose_on_this_side_has_no_reason_and_the_code_that_fits_it() {
    let gateway = fleet().await;
    let endpoint = gateway.endpoint();
    let unasked = document(&ask(&gateway, "fence r1n07 -o json").await);
    assert_eq!((unasked["code"].as_str(), &unasked["reason"]), (Some("invalid_argument"), &Value::Null));
    assert!(unasked["message"].as_str().is_some_and(|said| said.contains("--yes")), "{unasked}");
    gateway.kill().await;
    for line in ["nodes -o json", "watch -o json", "fence r1n07 --yes -o json", "history -o json"] {
        let ran = ask(&gateway, line).await;
        assert_eq!(ran.code, 5, "{ran:?}");
        let error = document(&ran);
        assert_eq!((error["code"].as_str(), &error["reason"]), (Some("unavailable"), &Value::Null));
        assert_eq!(error["metadata"]["endpoint"], endpoint);
        assert!(error["details"][0].as_str().is_some_and(|said| said.contains("nobody listens")), "{error}");
        assert_eq!(
            ran.out.lines().count() == 1,
            line.starts_with("watch"),
            "a watch tells one a line: {ran:?}"
        );
    }
    let mut command = picket("nodes -o json");
    command.args(["--endpoint", "ftp://x"]);
    let ran = run(command).await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!(document(&ran)["code"], "invalid_argument");
}

#[tokio::test]
async fn http_at_a_port_that_speaks_tls_is_told() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("it is bound"));
    // What rustls answers to something that is no TLS: the fatal alert decode_error.
    let speaks_tls = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 24];
            let _ = stream.read_exact(&mut asked).await;
            let _ = stream.write_all(&[0x15, 3, 3, 0, 2, 2, 50]).await;
        }
    });
    for line in ["nodes", "fence r1n07 --yes"] {
        let mut command = picket(line);
        command.args(["--endpoint", &endpoint]);
        let ran = run(command).await;
        assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{ran:?}");
        assert!(ran.err.contains("https://127.0.0.1:") && ran.err.contains("TLS"), "{}", ran.err);
    }
    speaks_tls.abort();
}
