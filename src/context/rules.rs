//! The rules of context files.

crate::diag::rules! {
    SYNTAX = Error "context/syntax", "a context file is not valid JSON",
        "A context is one JSON object: no comments, no trailing commas, no duplicate keys, integers within 64 \
         bits.\n\n\
         Other than in templates, a trailing comma is not forgiven here: these files are data, written by hand or \
         by a program.";
    INVALID = Error "context/invalid", "a context file does not have the form of a context",
        "A key is missing, has the wrong type, or a block is of no known type. The context is then left out, so \
         nothing is compiled against it.\n\n\
         `docs/contexts.md` lists the keys; the bundled contexts (`reqc contexts`) are examples of each. Two \
         mistakes are frequent:\n\n\
         * a system message is a typed item: `{\"kind\": \"notification\", \"text\": \"…\"}`, not `{\"role\": \
         \"system\", …}`\n\
         * tool results belong to a message of role `user`, tool calls and thinking to one of role `assistant`";
    UNKNOWN_KEY = Warning "context/unknown-key", "a context file has a key that nothing reads",
        "The key has no effect; most often it is misspelt. The rest of the context is used.\n\n\
         * wrong: `\"is_golden\": true`\n\
         * right: `\"golden\": true`";
    REPEATED_LAYER = Warning "context/repeated-layer", "two system layers of a context have one name",
        "A session has one layer of a name: setting it again replaces the text. A context with two of them shows a prompt that no \
         session can send.\n\n\
         * wrong: `\"system_layers\": [{\"name\": \"memory\", \"text\": \"a\"}, {\"name\": \"memory\", \"text\": \"b\"}]`\n\
         * right: one layer with both texts, or two names";
    NOT_NORMAL = Warning "context/not-normal", "a conversation is not in normal form",
        "Before a history is rendered it is brought into normal form, by the same function that the runtime uses. Calls and \
         results without their other half, messages without content and turns of thinking alone are dropped; results move right \
         behind their calls; an error result without text gets one; a call with the id of an earlier one gets another. What the \
         file says instead never reaches a body, so the context does not test what it seems to test.\n\n\
         `docs/contexts.md` has the whole list.";
    UNKNOWN_ORIGIN = Warning "context/unknown-origin", "a block of a context is from a client API that there is none of",
        "A block with an `origin` goes back to that client API alone, and is left out for every other. An origin that is misspelt, or that is the \
         name of a provider instance, is not a client API's: the block reaches no body, and the context tests nothing of it.\n\n\
         * wrong: `\"origin\": \"claude\"`\n\
         * right: `\"origin\": \"Claude\"`\n\n\
         `client_api` in a provider instance has the same names.";
    UNSENT_BLOCK = Warning "context/unsent-block", "a provider block of a context has no place in requests to its origin",
        "Chat Completions, Mistral and Ollama take back a few members and parts of an answer, and `reqc` leaves out all others. A block of another \
         kind reaches no body, and is most often misspelt; `text`, if it has one, stands for it.\n\n\
         * wrong: `{\"type\": \"provider_block\", \"origin\": \"OpenAI (Chat Completions)\", \"data\": {\"adio\": {\"id\": \"audio_1\"}}}`\n\
         * right: `… \"data\": {\"audio\": {\"id\": \"audio_1\"}}}`";
    MEDIA_TYPE = Warning "context/media-type", "a document or a recording of a context is of no known media type",
        "Templates choose by the media type how a document or a recording is written; of one that they don't know, a line of text may be all that a \
         body has. What is not a media type (`pdf`), or almost a known one, is reported; other types are accepted as they are. \
         Where the provider refuses it, this is an error.\n\n\
         * wrong: `\"media_type\": \"aplication/pdf\"`\n\
         * right: `\"media_type\": \"application/pdf\"`\n\n\
         Of images the wire format's schema says which it takes.";
}
