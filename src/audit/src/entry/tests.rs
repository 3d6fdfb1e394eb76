use serde_json::json;

use super::*;

fn told() -> Told {
    Told {
        at: 1_795_250_372_042,
        who: "uid:0".to_owned(),
        role: "operator".to_owned(),
        what: "request".to_owned(),
        node: Some("r1n07".to_owned()),
        fence: Some("01a1fd42-bdca-7707-8707-070707070707".to_owned()),
        generation: Some(3),
        details: json!({ "call": "fence", "reason": "disk errors — \"r1\"\n" }),
    }
}

/// Other languages check by these words what this one writes: it never changes for form 1.
#[test]
fn the_form_is_this() {
    let (line, head) = encode(&told(), &Head::none()).expect("JSON");
    let line = String::from_utf8(line).expect("text");
    assert_eq!(
        line,
        format!(
            "{{\"v\":1,\"seq\":1,\"at\":\"2026-11-21T08:39:32.042Z\",\"who\":\"uid:0\",\"role\":\"operator\",\
             \"what\":\"request\",\"node\":\"r1n07\",\"fence\":\"01a1fd42-bdca-7707-8707-070707070707\",\
             \"generation\":3,\"details\":{{\"call\":\"fence\",\"reason\":\"disk errors — \\\"r1\\\"\\n\"}},\
             \"prev\":\"{BEFORE_ALL}\",\"hash\":\"{}\"}}\n",
            head.hash
        )
    );
    assert_eq!(head.hash, sha256(&line.as_bytes()[..line.len() - 1 - SEAL]));
}

#[test]
fn an_entry_comes_back_and_a_changed_one_does_not() {
    let (mut line, head) = encode(&told(), &Head::none()).expect("JSON");
    line.pop();
    let entry = decode(&line).expect("an entry");
    assert_eq!((entry.seq, &entry.hash, entry.who.as_str()), (1, &head.hash, "uid:0"));
    for at in 0..line.len() {
        let mut changed = line.clone();
        changed[at] ^= 1;
        assert!(decode(&changed).is_err(), "byte {at} of {}", String::from_utf8_lossy(&changed));
    }
    let spaced = String::from_utf8(line).expect("text").replace(",\"hash\"", ", \"hash\"");
    assert_eq!(decode(spaced.as_bytes()), Err(NoEntry::Changed));
}

#[test]
fn an_entry_of_a_later_form_is_named() {
    let later = format!(
        "{{\"v\":2,\"seq\":1,\"at\":\"\",\"who\":\"\",\"what\":\"\",\"prev\":\"\",\"hash\":\"{BEFORE_ALL}\"}}"
    );
    assert_eq!(decode(later.as_bytes()), Err(NoEntry::Newer(2)));
}

#[test]
fn a_long_text_is_cut_at_a_letter() {
    let long = Told { who: "é".repeat(2_000), details: json!({ "a": ["x".repeat(5_000)] }), ..told() };
    let (mut line, _) = encode(&long, &Head::none()).expect("JSON");
    line.pop();
    let entry = decode(&line).expect("an entry");
    assert!(entry.who.ends_with("é…") && entry.who.len() < 2_060);
    assert_eq!(entry.details["a"][0].as_str().map(str::len), Some(LONGEST + '…'.len_utf8()));
}
