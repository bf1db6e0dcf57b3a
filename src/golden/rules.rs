//! The rules about golden files.

crate::diag::rules! {
    DRIFT = Error "golden/drift", "golden files differ from the compiled bodies",
        "Reviewers have seen the committed bodies, but reqc would send different ones. Either a profile, partial or context \
         changed without `reqc compile`, or somebody edited a golden file.\n\n\
         `reqc compile --diff` shows the changes in groups; `reqc compile` writes them. Review them like code, and commit \
         them with the change that caused them.";
    FOREIGN = Warning "golden/foreign", "a file among the golden files was not written by reqc",
        "`reqc compile` removes golden files that are no longer needed, but only if it can prove that it wrote them: they must \
         be next to a `request.json` of the agent that the folder is named after, and listed in `golden/.reqc-manifest`. It \
         neither touches nor compares any other JSON file in an agent's folder.\n\n\
         * wrong: `golden/reviewer/notes.json`, written by hand\n\
         * right: `notes/reviewer.json`\n\n\
         Delete the file, or move it elsewhere. After an upgrade from a version without the manifest, the file may be the body \
         of a removed context: delete it.";
}
