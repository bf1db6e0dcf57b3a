//! Who wrote each value: everything that the record says of the bundled agents' bodies, tried.

use std::collections::BTreeMap;
use std::sync::Arc;

use reqc::compile::{Compiler, SourceKind};
use reqc::repo::LoadOptions;
use reqc::system::Embedded;

fn compiler() -> Compiler {
    let options = LoadOptions { with_bundled: true, ..LoadOptions::default() };
    Compiler::load(Arc::new(reqc::world::MemoryWorld::default()), Arc::new(Embedded::bundled()), options)
}

#[test]
fn nearly_every_byte_has_an_exact_source() {
    let compiler = compiler();
    let mut bytes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut pointers = 0;
    for &(id, _) in compiler.agents() {
        for ready in compiler.contexts() {
            let Some(Ok((_, explained))) = compiler.explain(id, &ready.context.name, None, None) else { continue };
            for explanation in explained {
                pointers += 1;
                let name = &compiler.hierarchy().get(id).name.value;
                for source in &explanation.sources {
                    let kind = if source.span.is_none() && source.kind != SourceKind::Tag { "no span" } else { source.kind.name() };
                    *bytes.entry(kind).or_default() += source.len;
                    if kind == "no span" || kind == "computed" || kind == "unknown" {
                        let tag = source.tag.map(|tag| format!("{} {:?}", compiler.sources().describe(tag), compiler.sources().slice(tag)));
                        println!("{kind} {name} {} {} {:?} {:?} {:?}", ready.context.name, explanation.pointer, source.data, tag, source.made_of);
                    }
                }
                if explanation.sources.is_empty() {
                    *bytes.entry(if explanation.step.is_some() { "step" } else { "literal" }).or_default() +=
                        explanation.value.to_string().len();
                }
            }
        }
    }
    println!("{pointers} pointers: {bytes:?}");
    panic!();
}
