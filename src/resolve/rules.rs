//! The rules of `extends`.

crate::diag::rules! {
    CYCLE = Error "extends/cycle", "profiles extend each other in a circle",
        "Following `extends` must end at a profile that extends nothing. The message shows the circle; break it \
         at one of its links. It is reported once, not once per member; profiles that descend from the circle are \
         skipped.\n\n\
         Two profiles that want to share settings need a third one: move what they share to an `abstract` \
         profile, and let both extend that.";
    UNKNOWN_PARENT = Error "extends/unknown-parent", "`extends` names a profile that does not exist",
        "`extends` takes the `name` of a profile, of the repository or bundled, not a file name.\n\n\
         * wrong: `extends = \"openai_base.toml\"`\n\
         * right: `extends = \"OpenAI Base\"`\n\n\
         Reported once, at the value; profiles that descend from this one are skipped. With `--no-bundled` the \
         bundled profiles cannot be extended.";
    TOO_DEEP = Error "extends/too-deep", "a chain of `extends` is longer than 32",
        "Nobody can predict what a value will be after 32 levels. The finding stands at the profile that is one \
         too deep; what descends from it is skipped.\n\n\
         `reqc tree` shows what each level adds: levels that add little can be merged.";
    KIND_CHANGE = Warning "extends/kind-change", "a table is replaced by a plain value, or the reverse",
        "Tables merge key by key; everything else is replaced whole. A plain value over a table throws away all \
         that was inherited in it, which is rarely meant.\n\n\
         If it is meant, list the path in `unset`: then the inherited table is gone on purpose and nothing is \
         reported.\n\n\
         * reported: `thinking = \"off\"` over an inherited `[body.thinking]`\n\
         * on purpose: the same, with `unset = [\"thinking\"]` at the top level";
    REPEATED = Warning "extends/repeated", "a profile repeats a value that it inherits",
        "Without the line the value would be the same. It hides what the profile is about, and it stays behind when the base \
         changes: whoever edits the base believes that all agents follow.\n\n\
         Tables merge key by key, so only the keys that differ are written. To hold a value whatever the base says, lower the rule \
         for this profile with an `[[allow]]` that says so.\n\n\
         * reported: `max_tokens = 4096` over an inherited `max_tokens = 4096`\n\
         * right: no `max_tokens`";
    UNSET_NOTHING = Warning "extends/unset-nothing", "`unset` names what is not inherited",
        "`unset` removes fields of the *inherited* body, before the profile's own `[body]` is merged. The path is \
         dotted and starts inside the body; a key that holds dots itself is quoted. `headers.NAME` removes an inherited header of \
         `[headers]`; those of the provider instance are its own. A path that matches nothing \
         is most often misspelt, or the parent no longer sets it.\n\n\
         * wrong: `unset = [\"body.stream_options\"]`\n\
         * right: `unset = [\"stream_options\"]`, or `[\"stream_options.include_usage\"]` for one member";
}
