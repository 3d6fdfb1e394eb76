//! What is made to be carried elsewhere: `cargo xtask image` and `package`.

use super::{Task, USAGE};
use crate::failure::Failure;
use crate::{image, package};

/// `cargo xtask image`.
pub fn image_of(words: &[String]) -> Result<Task, Failure> {
    let mut options = image::Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut next = || {
            let wanted = || Failure::new(format!("{word} wants a word after it\n\n{USAGE}"));
            words.next().cloned().ok_or_else(wanted)
        };
        match word.as_str() {
            "--out" => options.out = Some(next()?.into()),
            "--from" => options.from = Some(next()?.into()),
            "--profile" => options.profile = Some(next()?),
            "--help" => return Ok(Task::Help),
            _ => return Err(Failure::new(format!("image takes no {word}\n\n{USAGE}"))),
        }
    }
    if options.from.is_some() && options.profile.is_some() {
        return Err(Failure::new(format!(
            "what --from names is built already, by whatever --profile\n\n{USAGE}"
        )));
    }
    Ok(Task::Image(options))
}

/// `cargo xtask package`.
pub fn package_of(words: &[String]) -> Result<Task, Failure> {
    let mut options = package::Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut next = || {
            let wanted = || Failure::new(format!("{word} wants a word after it\n\n{USAGE}"));
            words.next().cloned().ok_or_else(wanted)
        };
        match word.as_str() {
            "--yes" => options.yes = true,
            "--check" => options.check = true,
            "--out" => options.out = Some(next()?.into()),
            "--from" => options.from = Some(next()?.into()),
            "--revision" => options.revision = super::number(word, words.next())?,
            "--help" => return Ok(Task::Help),
            _ => return Err(Failure::new(format!("package takes no {word}\n\n{USAGE}"))),
        }
    }
    Ok(Task::Package(options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::tests::parsed;

    #[test]
    fn images_go_to_a_folder_and_come_from_a_profile_or_a_folder() {
        let options = image::Options { out: Some("/tmp/x".into()), profile: Some("dev".into()), from: None };
        assert_eq!(parsed("image --out /tmp/x --profile dev"), Ok(Task::Image(options)));
        for (line, word) in
            [("image --out", "--out"), ("image now", "now"), ("image --from a --profile dev", "--from")]
        {
            let Err(Failure(message)) = parsed(line) else { panic!("{line} was taken") };
            assert!(message.contains(word) && message.contains("usage:"), "{message}");
        }
    }

    #[test]
    fn packages_go_to_a_folder_and_may_be_made_twice() {
        let options = package::Options {
            out: Some("/tmp/x".into()),
            check: true,
            revision: 3,
            ..package::Options::default()
        };
        assert_eq!(parsed("package --out /tmp/x --check --revision 3"), Ok(Task::Package(options)));
        for (line, word) in
            [("package --out", "--out"), ("package now", "now"), ("package --revision a", "--revision")]
        {
            let Err(Failure(message)) = parsed(line) else { panic!("{line} was taken") };
            assert!(message.contains(word) && message.contains("usage:"), "{message}");
        }
    }
}
