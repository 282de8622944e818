//! Which hole, if any, this process was asked to open.

use crate::model::{Holes, UnknownHole};

/// The environment variable that names one hole.
#[cfg(feature = "failpoints")]
const VARIABLE: &str = "RELATCH_HOLE";

/// The guards that are taken out in this process: none, except in a build with the feature `failpoints`
/// whose environment names one.
///
/// # Errors
///
/// [`UnknownHole`] if it names one that does not exist.
#[cfg(feature = "failpoints")]
pub fn holes() -> Result<Holes, UnknownHole> {
    match std::env::var(VARIABLE) {
        Ok(name) => Ok(Holes::only(name.parse()?)),
        Err(_) => Ok(Holes::none()),
    }
}

/// The guards that are taken out in this process: none, without the feature `failpoints`.
///
/// # Errors
///
/// None, without the feature.
#[cfg(not(feature = "failpoints"))]
pub fn holes() -> Result<Holes, UnknownHole> {
    Ok(Holes::none())
}
