//! The rules of `extends`.

crate::diag::rules! {
    CYCLE = Error "extends/cycle", "profiles extend each other in a circle",
        "Following `extends` must end at a profile that extends nothing. The message shows the circle; break it at one \
         of its links. It is reported once, not once per member; profiles that descend from the circle are skipped.";
    UNKNOWN_PARENT = Error "extends/unknown-parent", "`extends` names a profile that does not exist",
        "`extends` takes the `name` of a profile, of the repository or bundled, not a file name. Reported once, at the \
         value; profiles that descend from this one are skipped.";
    TOO_DEEP = Error "extends/too-deep", "a chain of `extends` is longer than 32",
        "Nobody can predict what a value will be after 32 levels. The finding stands at the profile that is one too deep.";
    KIND_CHANGE = Warning "extends/kind-change", "a table is replaced by a plain value, or the reverse",
        "Tables merge key by key; everything else is replaced whole. A plain value over a table throws away all that was \
         inherited in it, which is rarely meant.\n\nIf it is meant, list the path in `unset` first: then the inherited \
         table is gone on purpose and nothing is reported.";
    UNSET_NOTHING = Warning "extends/unset-nothing", "`unset` names a body field that is not inherited",
        "`unset` removes fields of the *inherited* body, before the profile's own `[body]` is merged. The path is dotted \
         and starts inside the body: `stream_options.include_usage`. A path that matches nothing is most often misspelt, \
         or the parent no longer sets it.";
}
