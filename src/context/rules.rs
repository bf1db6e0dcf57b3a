//! The rules about context files.

crate::diag::rules! {
    SYNTAX = Error "context/syntax", "a context file is not valid JSON",
        "A context is one JSON object: no comments, no trailing commas, no duplicate keys, integers within 64 \
         bits.\n\n\
         Unlike in templates, a trailing comma is an error here: these files are data, written by hand or by a \
         program.";
    INVALID = Error "context/invalid", "a context file does not have the form of a context",
        "A key is missing or has the wrong type, or a block has an unknown type. The context is left out, so \
         nothing is compiled against it.\n\n\
         `docs/contexts.md` lists the keys; the bundled contexts (`reqc contexts`) contain examples of each. \
         Two mistakes are frequent:\n\n\
         * a system message must be a typed item: `{\"kind\": \"notification\", \"text\": \"…\"}`, not \
         `{\"role\": \"system\", …}`\n\
         * tool results belong in a message of role `user`, tool calls and thinking in one of role `assistant`";
    UNKNOWN_KEY = Warning "context/unknown-key", "a context file has a key that nothing reads",
        "The key has no effect; usually it is misspelled. The rest of the context is used.\n\n\
         * wrong: `\"is_golden\": true`\n\
         * right: `\"golden\": true`";
    REPEATED_LAYER = Warning "context/repeated-layer", "two system layers in a context have the same name",
        "A session has only one layer with a given name: setting it again replaces the text. A context with two of them shows a \
         prompt that no session can send.\n\n\
         * wrong: `\"system_layers\": [{\"name\": \"memory\", \"text\": \"a\"}, {\"name\": \"memory\", \"text\": \"b\"}]`\n\
         * right: one layer with both texts, or two names";
    NOT_NORMAL = Warning "context/not-normal", "a conversation is not in normal form",
        "Before a history is rendered, it is brought into normal form by the same function that the runtime uses. It drops \
         calls without results, results without calls, empty messages, and turns with only thinking; moves results directly \
         after their calls; adds text to an error result without any; and gives a repeated call ID a new value. The file's \
         own version never reaches a body, so the context does not test what it seems to test.\n\n\
         `docs/contexts.md` has the complete list.";
    UNKNOWN_ORIGIN = Warning "context/unknown-origin", "a block in a context comes from an unknown client API",
        "A block with an `origin` is sent back only to that client API, and left out for all others. If the origin is misspelled, or is \
         the name of a provider instance, it is not a client API: the block is never sent, so the context does not test it.\n\n\
         * wrong: `\"origin\": \"claude\"`\n\
         * right: `\"origin\": \"Claude\"`\n\n\
         `client_api` in a provider instance uses the same names.";
    UNSENT_BLOCK = Warning "context/unsent-block", "a provider block in a context cannot be sent to its origin",
        "Chat Completions, Mistral and Ollama accept back only a few fields and parts of an answer, and `reqc` leaves out all others. A \
         block of any other kind is not sent; usually, its name is misspelled. If it has `text`, that is sent instead.\n\n\
         * wrong: `{\"type\": \"provider_block\", \"origin\": \"OpenAI (Chat Completions)\", \"data\": {\"adio\": {\"id\": \"audio_1\"}}}`\n\
         * right: `… \"data\": {\"audio\": {\"id\": \"audio_1\"}}}`";
    MEDIA_TYPE = Warning "context/media-type", "a document or an audio recording in a context has an unknown media type",
        "Templates use the media type to decide how to write a document or an audio recording; for an unknown type, the body may contain \
         only a line of text. A value that is not a media type (`pdf`), or that is almost a known one, is reported; other types are \
         accepted as they are. If the provider rejects the value, this is an error.\n\n\
         * wrong: `\"media_type\": \"aplication/pdf\"`\n\
         * right: `\"media_type\": \"application/pdf\"`\n\n\
         For images, the wire format's schema checks the type.";
}
