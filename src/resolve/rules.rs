//! The rules about `extends`.

crate::diag::rules! {
    CYCLE = Error "extends/cycle", "profiles extend each other in a cycle",
        "A chain of `extends` must end at a profile that extends nothing. The message shows the cycle; remove \
         one of its links. The cycle is reported once, not once per profile; profiles that extend one of its \
         members are skipped.\n\n\
         If two profiles share settings, move these to an `abstract` profile, and let both extend that.";
    UNKNOWN_PARENT = Error "extends/unknown-parent", "`extends` names a profile that does not exist",
        "`extends` takes the `name` of a profile, in the repository or bundled, not a file name.\n\n\
         * wrong: `extends = \"openai_base.toml\"`\n\
         * right: `extends = \"OpenAI Base\"`\n\n\
         The mistake is reported once, at the value; profiles that extend this one are skipped. With \
         `--no-bundled`, bundled profiles cannot be extended.";
    TOO_DEEP = Error "extends/too-deep", "a chain of `extends` is longer than 32",
        "After 32 levels, it is hard to predict what a value will be. The finding points to the first profile beyond \
         the limit; profiles that extend it are skipped.\n\n\
         `reqc tree` shows what each level adds: levels that add little can be merged.";
    KIND_CHANGE = Warning "extends/kind-change", "a table is replaced by a plain value, or the reverse",
        "Tables are merged key by key; every other value is replaced as a whole. A plain value in place of a \
         table discards everything that was inherited in it, which is rarely intended.\n\n\
         If it is intended, list the path in `unset`: this removes the inherited table on purpose, and nothing \
         is reported.\n\n\
         * reported: `thinking = \"off\"` over an inherited `[body.thinking]`\n\
         * on purpose: the same, with `unset = [\"thinking\"]` at the top level";
    REPEATED = Warning "extends/repeated", "a profile repeats a value that it inherits",
        "Without the line, the value would be the same. The line distracts from what the profile really changes. If the base changes, it \
         also keeps the old value, although whoever edits the base expects all agents to follow.\n\n\
         Tables are merged key by key, so write only the keys that differ. To keep a value no matter what the base sets, allow \
         the finding for this profile with an `[[allow]]` entry that gives the reason.\n\n\
         * reported: `max_tokens = 4096` over an inherited `max_tokens = 4096`\n\
         * right: no `max_tokens`";
    UNSET_NOTHING = Warning "extends/unset-nothing", "`unset` lists something that is not inherited",
        "`unset` removes fields of the *inherited* body, before the profile's own `[body]` is merged. The path is dotted and \
         starts inside the body; quote a key that contains dots. `headers.NAME` removes an inherited header from `[headers]`, \
         but not one of the provider instance. If a path matches nothing, it is usually misspelled, or the parent no longer sets \
         it.\n\n\
         * wrong: `unset = [\"body.stream_options\"]`\n\
         * right: `unset = [\"stream_options\"]`, or `[\"stream_options.include_usage\"]` for one member";
}
