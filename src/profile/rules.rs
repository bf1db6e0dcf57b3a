//! The rules of a single profile file.

crate::diag::rules! {
    OLD_KEY = Error "profile/old-key", "a key of the older profile format",
        "`role`, `context`, `[template]`, `sampling` and `thinking` belong to the format that `[body]` replaced. They are \
         not read any more, so a profile that has one would send something other than its author expects.\n\n\
         * `role`, `context` → `system_prompt`\n* `[template].message_format` → `[body]`\n* `sampling`, `thinking` → the \
         provider's own fields in `[body]`";
    MODEL_IN_BODY = Error "profile/model-in-body", "`model` is set in `[body]`",
        "The client owns the model: the command line, then `models.toml`, then the profile's `model` key. The \
         provider step writes it into the body as its first key, for formats that carry it there; Gemini, for \
         instance, has it in the URL. A `model` in the body would silently win over all of them.\n\n\
         * wrong: `model = \"…\"` below `[body]`\n\
         * right: `model = \"…\"` at the top level, above `[body]`";
    NO_JSON = Error "body/no-json-form", "a TOML value has no JSON form",
        "TOML dates, `nan` and `inf` cannot be written in JSON, so there is nothing that could be sent.\n\n\
         * wrong: `since = 2027-01-31`\n\
         * right: `since = \"2027-01-31\"`\n\n\
         For a number that should not be sent at all, leave the key out, or remove an inherited one with `unset`.";
}
