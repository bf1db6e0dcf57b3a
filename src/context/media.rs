//! Known media types, used to detect misspelled types.

use crate::diag::{is_misspelling, one_of};

/// Types of documents, recordings and images that people attach, registered or not. The list may be
/// incomplete, because a type that is not similar to a listed type is not reported. However, a
/// valid type that differs from a listed type by only one letter must be listed, too.
const KNOWN: [&str; 70] = [
    "application/epub+zip",
    "application/gzip",
    "application/javascript",
    "application/json",
    "application/msword",
    "application/octet-stream",
    "application/ogg",
    "application/pdf",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.oasis.opendocument.presentation",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.oasis.opendocument.text",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/x-ndjson",
    "application/xml",
    "application/xz",
    "application/yaml",
    "application/zip",
    "audio/3gpp",
    "audio/aac",
    "audio/aacp",
    "audio/ac3",
    "audio/aiff",
    "audio/amr",
    "audio/basic",
    "audio/flac",
    "audio/L16",
    "audio/L24",
    "audio/m4a",
    "audio/midi",
    "audio/mp2",
    "audio/mp3",
    "audio/mp4",
    "audio/mpa",
    "audio/mpeg",
    "audio/ogg",
    "audio/opus",
    "audio/pcm",
    "audio/vorbis",
    "audio/wav",
    "audio/wave",
    "audio/webm",
    "audio/x-aiff",
    "audio/x-flac",
    "audio/x-m4a",
    "audio/x-wav",
    "image/avif",
    "image/bmp",
    "image/gif",
    "image/heic",
    "image/heif",
    "image/jpeg",
    "image/png",
    "image/svg+xml",
    "image/tiff",
    "image/webp",
    "text/css",
    "text/csv",
    "text/html",
    "text/markdown",
    "text/plain",
    "text/rtf",
    "text/xml",
    "text/yaml",
];

/// Returns the help for an invalid media type, or one that is almost equal to a known type; `None`
/// for any other type, which is allowed even if it is unknown.
pub(super) fn help_for(written: &str) -> Option<String> {
    // Ignore parameters (`; charset=utf-8`) and case.
    let name = written.split(';').next().unwrap_or_default().trim();
    if KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return None;
    }
    let near: Vec<&str> = KNOWN
        .iter()
        .copied()
        .filter(|known| match name.contains('/') {
            true => is_misspelling(name, known),
            false => {
                known.split('/').any(|part| part.eq_ignore_ascii_case(name))
                    || is_misspelling(name, known)
            }
        })
        .take(3)
        .collect();
    match name.split_once('/') {
        Some((kind, subtype)) if !kind.is_empty() && !subtype.is_empty() => one_of(&near),
        _ => Some(
            one_of(&near)
                .unwrap_or_else(|| "write it as `application/pdf` or `audio/wav`".to_owned()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_type_is_told_and_one_that_is_merely_unknown_is_not() {
        for (written, near) in [
            ("aplication/pdf", "application/pdf"),
            ("application/PDFF", "application/pdf"),
            ("text/plian", "text/plain"),
            ("audio/wvav", "audio/wav"),
            ("pdf", "application/pdf"),
            ("wav", "audio/wav"),
        ] {
            let help = help_for(written).unwrap_or_else(|| panic!("{written}"));
            assert!(help.contains(near), "{written}: {help}");
        }
        assert!(help_for("/").is_some() && help_for("what").is_some());
        for right in KNOWN {
            assert_eq!(help_for(right), None);
        }
        for unknown in [
            "text/x-rust",
            "application/vnd.my.own",
            "text/plain; charset=utf-8",
            "Audio/WAV",
            "video/mp4",
        ] {
            assert_eq!(help_for(unknown), None, "{unknown}");
        }
    }
}
