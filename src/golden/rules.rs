//! The rules of golden files.

crate::diag::rules! {
    DRIFT = Error "golden/drift", "golden files differ from what the profiles say",
        "The committed bodies are what a reviewer has seen; what would be sent is something else. Either a profile, partial or \
         context changed without `reqc compile`, or somebody edited a golden file.\n\n`reqc compile --diff` shows the changes, \
         grouped; `reqc compile` writes them. Review them like code and commit them with the change that caused them.";
    FOREIGN = Warning "golden/foreign", "a file among the golden files was not written by reqc",
        "`reqc compile` removes golden files that are no longer needed, but only files that it can prove it wrote: they lie \
         beside a `request.json` of the agent that the folder is named after, and `golden/.reqc-manifest` lists them. Any other \
         JSON file in an agent's folder is left alone, and nothing compares it.\n\n\
         * wrong: `golden/reviewer/notes.json`, written by hand\n\
         * right: `notes/reviewer.json`\n\n\
         Delete the file, or move it elsewhere. After an upgrade from a version without the manifest it may be the body of a \
         context that was removed: delete it.";
}
