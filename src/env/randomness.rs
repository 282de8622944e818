//! Where random ids come from.

use crate::model::hex;

/// The system has no random bytes to give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("reading random bytes from the operating system: {detail}")]
pub struct RandomnessError {
    /// What the system said.
    pub detail: String,
}

/// A source of random bytes.
pub trait Randomness: Send + Sync {
    /// Fills `bytes`.
    ///
    /// # Errors
    ///
    /// [`RandomnessError`] if the source cannot; `bytes` are of no use then.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomnessError>;
}

/// The operating system's own source.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsRandomness;

impl Randomness for OsRandomness {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomnessError> {
        getrandom::fill(bytes).map_err(|error| RandomnessError { detail: error.to_string() })
    }
}

/// A new id of 32 lower-case hex digits, the form of every id that relatch mints.
///
/// # Errors
///
/// [`RandomnessError`] if the source has none.
pub fn hex_id(randomness: &dyn Randomness) -> Result<String, RandomnessError> {
    let mut bytes = [0; 16];
    randomness.fill(&mut bytes)?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RunId;

    struct Fixed(u8);

    impl Randomness for Fixed {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomnessError> {
            bytes.fill(self.0);
            Ok(())
        }
    }

    #[test]
    fn a_minted_id_has_the_form_that_every_id_is_checked_for() {
        let id = hex_id(&OsRandomness).unwrap();
        assert!(RunId::new(id.clone()).is_ok(), "{id}");
        assert_ne!(id, hex_id(&OsRandomness).unwrap());
    }

    #[test]
    fn small_bytes_keep_their_leading_zero() {
        assert_eq!(hex_id(&Fixed(0x0a)).unwrap(), "0a".repeat(16));
    }
}
