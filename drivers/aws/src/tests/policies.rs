//! The policies that are shipped, as far as that can be seen without AWS.

use serde_json::Value;

fn statements(text: &str) -> Vec<Value> {
    let policy: Value = serde_json::from_str(text).expect("JSON");
    policy["Statement"].as_array().expect("statements").clone()
}

fn words(value: &Value) -> Vec<String> {
    let one = value.as_str().map(|word| vec![word.to_owned()]);
    let many =
        || value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    one.unwrap_or_else(many)
}

/// Whether tags are named by their keys is not told by the keys alone: `DeleteTags` without any takes all of them.
#[test]
fn the_policy_allows_what_the_driver_does_and_no_more() {
    let statements = statements(include_str!("../../../../deploy/aws/policy.json"));
    let mut allowed: Vec<String> = statements.iter().flat_map(|one| words(&one["Action"])).collect();
    allowed.sort();
    let does = [
        "CreateTags",
        "DeleteTags",
        "DescribeInstanceAttribute",
        "DescribeInstances",
        "DescribeSpotInstanceRequests",
        "DescribeVolumes",
        "DetachVolume",
        "StartInstances",
        "StopInstances",
    ];
    assert_eq!(allowed, does.map(|action| format!("ec2:{action}")));
    for one in statements {
        let [actions, resources] = ["Action", "Resource"].map(|key| words(&one[key]));
        let only_looks = actions.iter().all(|action| action.starts_with("ec2:Describe"));
        assert!(only_looks || resources.iter().all(|resource| resource.starts_with("arn:*:ec2:")), "{one}");
        if actions.iter().any(|action| action.ends_with("Tags")) {
            assert_eq!(one["Condition"]["Null"]["aws:TagKeys"], "false", "{one}");
        }
    }
}

#[test]
fn the_tag_is_denied_to_others_also_where_all_tags_are_taken_away() {
    let statements = statements(include_str!("../../../../deploy/aws/keep-off.json"));
    assert!(statements.iter().all(|one| one["Effect"] == "Deny"));
    let deletes: Vec<_> = statements
        .iter()
        .filter(|one| words(&one["Action"]).contains(&"ec2:DeleteTags".to_owned()))
        .collect();
    let named =
        |one: &&&Value| one["Condition"]["ForAnyValue:StringEquals"]["aws:TagKeys"][0] == "picket-fenced";
    let unnamed = |one: &&&Value| one["Condition"]["Null"]["aws:TagKeys"] == "true";
    assert_eq!((deletes.iter().filter(named).count(), deletes.iter().filter(unnamed).count()), (1, 1));
    let starts = &statements[0]["Condition"]["StringEquals"]["aws:ResourceTag/picket-fenced"];
    assert_eq!(starts, crate::instance::OURS);
}

/// A release may choose volumes by their tags (`include`, `exclude`).
#[test]
fn the_key_by_which_volumes_are_chosen_is_denied_to_others() {
    let statements = statements(include_str!("../../../../deploy/aws/keep-off.json"));
    let of_volumes: Vec<&Value> = statements
        .iter()
        .filter(|one| words(&one["Resource"]).contains(&"arn:*:ec2:*:*:volume/*".to_owned()))
        .collect();
    let denied = |action: &str, is_so: fn(&Value) -> bool| {
        of_volumes
            .iter()
            .any(|one| words(&one["Action"]).contains(&action.to_owned()) && is_so(&one["Condition"]))
    };
    let example = include_str!("../../../../deploy/picket.example.toml");
    assert!(example.contains("\"picket=stay\"") && example.contains("\"picket=go\""));
    let named = |condition: &Value| condition["ForAnyValue:StringEquals"]["aws:TagKeys"][0] == "picket";
    assert!(denied("ec2:CreateTags", named) && denied("ec2:DeleteTags", named));
    assert!(denied("ec2:DeleteTags", |condition| condition["Null"]["aws:TagKeys"] == "true"));
}
