use proptest::prelude::*;

use super::*;

#[track_caller]
fn expands(list: &str, want: &[&str]) {
    assert_eq!(
        expand(list).as_deref(),
        Ok(want.iter().map(|s| s.to_string()).collect::<Vec<_>>().as_slice())
    );
}

#[test]
fn lists_expand_as_operators_expect() {
    expands("login", &["login"]);
    expands("r1n[01-03,10]", &["r1n01", "r1n02", "r1n03", "r1n10"]);
    expands("a[1-2]b[3-4]", &["a1b3", "a1b4", "a2b3", "a2b4"]);
    expands("n[9-11],m", &["n9", "n10", "n11", "m"]);
    expands("n[98-101].example", &["n98.example", "n99.example", "n100.example", "n101.example"]);
    expands("n[08-10]", &["n08", "n09", "n10"]);
    expands("n[099-101]", &["n099", "n100", "n101"]);
    expands("n[0-1,00]", &["n0", "n1", "n00"]);
    expands(" a , b[1] ", &["a", "b1"]);
    expands("[1-2]x", &["1x", "2x"]);
}

#[test]
fn a_name_written_twice_comes_once() {
    expands("n[1-3,2],n3,n4", &["n1", "n2", "n3", "n4"]);
}

#[test]
fn a_fault_says_where_and_what_would_be_right() {
    for (list, column, what) in [
        ("", 1, "a name is missing"),
        ("a,,b", 3, "a name is missing"),
        ("a,", 3, "a name is missing"),
        ("r1n[01-40", 10, "the bracket opened in column 4 is not closed"),
        ("r1n01]", 6, "never opened"),
        ("r1n[]", 5, "a number is missing"),
        ("r1n[1-]", 7, "a number is missing"),
        ("r1n[a-c]", 5, "a number is missing"),
        ("r1n[1;2]", 6, "does not belong into brackets"),
        ("r1n[[1]]", 5, "a number is missing"),
        ("n[5-1]", 3, "runs backwards"),
        ("n[1-05]", 3, "same number of digits"),
        ("n[001-05]", 3, "same number of digits"),
        ("n1 n2", 4, "separate names by commas"),
        ("n/1", 2, "does not belong into a name"),
        ("-n", 1, "begins with a letter or a digit"),
        ("n[1-1234567890123456789]", 5, "longer than 18 digits"),
        ("n[1-65536],x", 12, "more than 65536"),
        ("a[1-999]b[1-999]c[1-999999999999]d[1-999999999999]", 1, "more than 65536"),
    ] {
        let error = expand(list).expect_err(list);
        assert_eq!(error.column, column, "{list}: {error}");
        assert!(error.to_string().contains(what), "{list}: {error}");
    }
    assert!(expand(&format!("a{}", "b".repeat(253))).is_err(), "too long a name");
    assert_eq!(expand("n[1-65536]").map(|names| names.len()), Ok(MOST));
}

#[test]
fn names_fold_to_what_an_operator_would_write() {
    for (names, want) in [
        (&["r1n03", "r1n01", "r1n02", "r1n45"][..], "r1n[01-03,45]"),
        (&["n9", "n10", "n11"], "n[9-11]"),
        (&["n09", "n10"], "n[09,10]"),
        (&["n09", "n10", "n100"], "n[09,10,100]"),
        (&["n7", "n07", "n007"], "n7,n07,n007"),
        (&["n1.example", "n2.example", "login"], "n[1,2].example,login"),
        (&["n12345678901234567890"], "n12345678901234567890"),
        (&[], ""),
    ] {
        assert_eq!(fold(names), want);
    }
}

fn name() -> impl Strategy<Value = String> {
    "[a-c]{1,2}([0-9]{1,4}(-|\\.|b)?){0,2}[a-b]?"
}

proptest! {
    #[test]
    fn what_is_folded_expands_again(names in prop::collection::vec(name(), 1..60)) {
        let folded = fold(&names);
        let expanded = expand(&folded).map_err(|e| TestCaseError::fail(format!("{folded}: {e}")))?;
        let want: BTreeSet<String> = names.into_iter().collect();
        prop_assert_eq!(expanded.len(), want.len(), "{}", folded);
        prop_assert_eq!(expanded.iter().cloned().collect::<BTreeSet<_>>(), want, "{}", folded);
        prop_assert_eq!(fold(&expanded), folded);
    }

    #[test]
    fn no_text_breaks_it_and_every_name_is_a_node_name(list in "[a-b0-9\\[\\],.\\- ]{0,24}|\\PC{0,24}") {
        match expand(&list) {
            Ok(names) => for name in names {
                prop_assert!(crate::ids::NodeId::new(&name).is_ok(), "{}", name);
            },
            Err(error) => prop_assert!(error.column >= 1 && error.column <= list.chars().count() + 1),
        }
    }
}
