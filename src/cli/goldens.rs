//! The folder of golden files, and the comparison with it.

use std::sync::Arc;

use super::Failure;
use super::options::Opened;
use super::progress::Progress;
use crate::compile::Report;
use crate::compile::compare::{Comparing, Purpose};
use crate::golden::{Comparison, GoldenFolder};
use crate::world::Output;

/// Returns the folder of golden files.
pub(super) fn golden(opened: &Opened) -> GoldenFolder {
    GoldenFolder::of_repository(Arc::clone(&opened.disk) as Arc<dyn Output>)
}

/// Compiles the selection and compares it with a folder.
pub(super) fn compare(
    opened: &Opened,
    folder: &GoldenFolder,
    purpose: Purpose,
    all_contexts: bool,
    quiet: bool,
) -> Result<(Report, Comparison), Failure> {
    let selection = opened.selection()?;
    let progress = Progress::start(opened.compiler.agents().len(), quiet);
    let comparing = Comparing {
        compiler: &opened.compiler,
        selection,
        options: &opened.policy,
        all_contexts,
    };
    Ok(comparing.golden(folder, purpose, || progress.tick())?)
}
