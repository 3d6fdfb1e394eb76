use serde_json::json;

use super::*;

fn cinder(status: &str, servers: &[&str]) -> CinderVolume {
    let attachments: Vec<_> = servers.iter().map(|server| json!({ "server_id": server })).collect();
    serde_json::from_value(json!({ "status": status, "attachments": attachments })).expect("a volume")
}

#[test]
fn a_volume_is_free_once_neither_has_it_at_the_server() {
    use Standing::{Attached, Free, Going};
    let is = |by_nova, known: Option<CinderVolume>| standing(by_nova, known.as_ref(), "us");
    for (by_nova, known, wanted) in [
        (true, Some(cinder("in-use", &["us"])), "attached"),
        (true, Some(cinder("detaching", &["us"])), "going"),
        (false, Some(cinder("in-use", &["us"])), "attached"),
        (true, Some(cinder("available", &[])), "going"),
        (true, Some(cinder("in-use", &["them"])), "going"),
        (true, Some(cinder("reserved", &[])), "attached"),
        (false, Some(cinder("available", &[])), "free"),
        (false, Some(cinder("in-use", &["them"])), "free"),
        (true, Some(cinder("in-use", &["us", "them"])), "attached"),
        (false, Some(cinder("in-use", &[])), "going"),
        (false, Some(cinder("reserved", &[])), "free"),
        (false, Some(cinder("error", &[])), "going"),
        (false, Some(cinder("a word of tomorrow", &[])), "going"),
        (false, None, "free"),
        (true, None, "going"),
    ] {
        let told = is(by_nova, known);
        let word = match told {
            Attached(_) => "attached",
            Going(_) => "going",
            Free(_) => "free",
        };
        assert_eq!(word, wanted, "{by_nova}: {told:?}");
    }
}

/// S4: what comes up does not say On yet.
#[test]
fn a_server_that_is_proven_off_lets_nothing_go_while_nova_does_not_say_that_it_is_off() {
    for (status, power_state, task_state, proven, vouched) in [
        ("SHUTOFF", 4, None, false, false),
        ("DELETED", 0, None, false, false),
        ("ACTIVE", 1, None, true, true),
        ("SHUTOFF", 4, Some("powering-on"), true, false),
        ("SUSPENDED", 4, None, true, false),
        ("PAUSED", 3, None, true, false),
        ("REBOOT", 4, Some("rebooting"), true, false),
        ("ERROR", 0, None, true, false),
    ] {
        let server = json!({
            "id": "us", "status": status, "OS-EXT-STS:power_state": power_state, "OS-EXT-STS:task_state": task_state
        });
        let server: Server = serde_json::from_value(server).expect("a server");
        assert_eq!((may_run(&server, true), may_run(&server, false)), (proven, vouched), "{status}");
    }
}

/// S8: Nova believes in a host for a minute after its end, and hands over what it was told when it is back.
#[test]
fn nothing_is_told_to_a_host_that_was_switched_off_whatever_nova_says_of_it() {
    for (status, is_by_parent, is_told) in [
        (Some("UP"), false, true),
        (None, false, true),
        (Some("DOWN"), false, false),
        (Some("UNKNOWN"), false, false),
        (Some("UP"), true, false),
        (None, true, false),
        (Some("DOWN"), true, false),
    ] {
        let server = Server { host_status: status.map(str::to_owned), ..Server::default() };
        assert_eq!(
            no_hands(&server, is_by_parent).is_none(),
            is_told,
            "{status:?}, by its parent: {is_by_parent}"
        );
    }
}

#[test]
fn the_root_is_what_the_server_was_booted_from() {
    let attachment = |device: &str| Attachment { volume: "v".to_owned(), device: Some(device.to_owned()) };
    let attachments = [attachment("/dev/vdaa"), attachment("/dev/vdb"), attachment("/dev/vda")];
    let server = |image: serde_json::Value, root: Option<&str>| Server {
        image,
        root_device: root.map(str::to_owned),
        ..Server::default()
    };
    for (server, root) in [
        (server(json!(""), Some("/dev/vdb")), Root::Device("/dev/vdb".to_owned())),
        (server(json!(""), None), Root::First("/dev/vda".to_owned())),
        (server(json!({ "id": "i" }), Some("/dev/vda")), Root::None),
        (server(json!({ "id": "i" }), None), Root::None),
    ] {
        assert_eq!(Root::of(&server, &attachments), root, "{server:?}");
    }
}
