//! Versions of a store's schema. A store holds the number of the newest applied step.

use crate::error::StoreError;

/// The steps that are still to be applied to a store that has had `found` of `steps`.
///
/// # Errors
/// [`StoreError::NewerSchema`] if the store has had more steps than this program knows.
pub(crate) fn pending<'a, T>(store: &str, steps: &'a [T], found: u32) -> Result<&'a [T], StoreError> {
    let known = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let done = usize::try_from(found).unwrap_or(usize::MAX);
    steps.get(done..).ok_or_else(|| StoreError::NewerSchema { store: store.to_owned(), found, known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_gets_the_steps_that_it_has_not_had() {
        assert_eq!(pending("s", &["a", "b"], 0), Ok(["a", "b"].as_slice()));
        assert_eq!(pending("s", &["a", "b"], 1), Ok(["b"].as_slice()));
        assert_eq!(pending("s", &["a", "b"], 2), Ok([].as_slice()));
        let newer = StoreError::NewerSchema { store: "s".to_owned(), found: 3, known: 2 };
        assert_eq!(pending("s", &["a", "b"], 3), Err(newer));
    }
}
