//! The rules of golden files.

crate::diag::rules! {
    DRIFT = Error "golden/drift", "golden files differ from what the profiles say",
        "The committed bodies are what a reviewer has seen; what would be sent is something else. Either a profile, partial or \
         context changed without `reqc compile`, or somebody edited a golden file.\n\n`reqc compile --diff` shows the changes, \
         grouped; `reqc compile` writes them. Review them like code and commit them with the change that caused them.";
}
