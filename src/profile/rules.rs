//! The rules about a single profile file.

crate::diag::rules! {
    OLD_KEY = Error "profile/old-key", "a key of the older profile format",
        "`role`, `context`, `[template]`, `sampling` and `thinking` belong to the format that `[body]` replaced. They \
         are no longer read, so a profile that uses one would send something other than its author expects.\n\n\
         * `role`, `context` → `system_prompt`\n\
         * `[template].message_format` → `[body]`\n\
         * `sampling`, `thinking` → the provider's own fields in `[body]`";
    MODEL_IN_BODY = Error "profile/model-in-body", "`model` is set in `[body]`",
        "The client chooses the model: from the command line, then from `models.toml`, then from the \
         profile's `model` key. The provider step writes it as the first key of the body, for formats that \
         have it there; for Gemini, for example, it is in the URL. A `model` in the body would silently \
         override all of these.\n\n\
         * wrong: `model = \"…\"` below `[body]`\n\
         * right: `model = \"…\"` at the top level, above `[body]`";
    RAW_ESCAPE = Warning "profile/raw-escape", "a string in single quotes contains `\\n` or `\\t`",
        "TOML reads single-quoted strings as they are: `\\n` is a backslash and the letter n, and the model reads both. Template tags and \
         the JSON in a body are not affected.\n\n\
         * wrong: `system_prompt = 'First line.\\nSecond line.'`\n\
         * right: `system_prompt = \"First line.\\nSecond line.\"`";
    NEWER_TOML = Warning "profile/newer-toml", "an inline table spans several lines",
        "TOML 1.1 allows line breaks and a trailing comma in inline tables, and `reqc` reads them. Many other programs read TOML 1.0, \
         such as Python's `tomllib`, and reject the file.\n\n\
         * wrong: `response_format = {`, with the members on the next lines\n\
         * right: `[body.response_format]`, with the members below it";
    NO_JSON = Error "body/no-json-form", "a TOML value cannot be written as JSON",
        "JSON has no dates, no `nan` and no `inf`, so these TOML values cannot be sent.\n\n\
         * wrong: `since = 2027-01-31`\n\
         * right: `since = \"2027-01-31\"`\n\n\
         For a number that should not be sent at all, leave the key out, or remove an inherited one with \
         `unset`.";
}
