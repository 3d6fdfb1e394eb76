//! What `picket` says of itself: grouped by what one wants, on one screen, and wrapped.

use crate::common::{golden, picket, run, see_of};

#[tokio::test]
async fn help_is_a_screen_and_every_way_to_it_says_the_same() {
    let (code, shown) = see_of(picket("--help"), 80).await;
    assert_eq!(code, 0, "{shown}");
    golden("help_80.txt", &shown);
    assert!(shown.lines().count() <= 24, "{shown}");
    for line in ["-h", "help"] {
        assert_eq!(see_of(picket(line), 80).await, (0, shown.clone()), "{line}");
    }
    assert_eq!(see_of(picket(""), 80).await, (2, shown.clone()), "nothing was asked for");
    golden("help_60.txt", &see_of(picket("help"), 60).await.1);
    let piped = run(picket("--help")).await;
    assert_eq!((piped.code, piped.out.trim_end()), (0, shown.trim_end()), "{piped:?}");
}

#[tokio::test]
async fn each_topic_fits_60_columns() {
    for (line, name) in [
        ("help commands", "help_commands"),
        ("help options", "help_options"),
        ("help exit-codes", "help_exit_codes"),
        ("help fence", "help_fence"),
    ] {
        for columns in [80, 60] {
            let (code, shown) = see_of(picket(line), columns).await;
            assert_eq!(code, 0, "{line}: {shown}");
            golden(&format!("{name}_{columns}.txt"), &shown);
        }
    }
    let (_, fence) = see_of(picket("help fence"), 80).await;
    assert!(fence.contains("Usage: picket fence ") && fence.contains("--minimum-grade"), "{fence}");
    assert_eq!(see_of(picket("fence --help"), 80).await.1, fence);
    let (_, nested) = see_of(picket("help receipt get"), 80).await;
    assert!(nested.contains("Usage: picket receipt get "), "{nested}");
    let unknown = run(picket("help fense")).await;
    assert!(unknown.code == 2 && unknown.err.contains("picket help commands"), "{unknown:?}");
}

#[tokio::test]
async fn the_version_is_told_as_a_command_too() {
    let (command, flag) = (run(picket("version")).await, run(picket("--version")).await);
    assert_eq!((command.code, &command.out), (0, &flag.out));
    assert!(command.out.starts_with("picket 0.") && command.out.contains("\ncommit: "), "{command:?}");
    let short = run(picket("-V")).await;
    assert_eq!(short.out, format!("picket {}\n", env!("CARGO_PKG_VERSION")));
}
