//! The files that AWS's SDK reads by itself: who may change one of them says as whom we ask, and whom.

use std::path::{Path, PathBuf};

use picket_driver::{DriverError, ErrorKind, source};

use super::wrong;

/// The files that the SDK looks for: the variable that names one, and its name below the home directory.
const PLACES: [(&str, &str); 2] =
    [("AWS_CONFIG_FILE", ".aws/config"), ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials")];

/// Whether nobody else may change them, nor the one of the settings. One that is not there is no fault.
///
/// # Errors
/// Somebody else may. Nothing was sent.
pub(super) fn check(config_file: Option<&Path>) -> Result<(), DriverError> {
    let usual = PLACES.into_iter().filter_map(|(variable, below)| {
        let named = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(below)))
    });
    for file in config_file.map(Path::to_owned).into_iter().chain(usual) {
        source::unchanged(&file)
            .map_err(|why| wrong(ErrorKind::Settings, format!("{}: {why}", file.display())))?;
    }
    Ok(())
}
