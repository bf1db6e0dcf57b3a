//! The rules of a single profile file.

crate::diag::rules! {
    OLD_KEY = Error "profile/old-key", "a key of the older profile format",
        "`role`, `context`, `[template]`, `sampling` and `thinking` belong to the format that `[body]` replaced. They are \
         not read any more, so a profile that has one would send something else than its author expects.\n\n\
         * `role`, `context` → `system_prompt`\n* `[template].message_format` → `[body]`\n* `sampling`, `thinking` → the \
         provider's own fields in `[body]`";
    MODEL_IN_BODY = Error "profile/model-in-body", "`model` is set in `[body]`",
        "The client owns the model: command line, then `models.toml`, then the profile's `model` key. The provider step \
         writes it into the body as its first key, for formats that carry it there. Write `model` at the top level.";
    NO_JSON = Error "body/no-json-form", "a TOML value has no JSON form",
        "TOML dates, `nan` and `inf` cannot be written in JSON. Write a string or a number.";
}
