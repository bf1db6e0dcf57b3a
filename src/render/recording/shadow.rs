//! What a marked render says while it runs: the functions behind the marks, and what they keep.
//!
//! Texts and objects are told apart by their addresses, which stay theirs as long as they are kept; what an operation makes of
//! known texts is worked out beside the engine, and believed only if it is what the engine made.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};

use super::super::dialect::PROMPT_VARIABLES;
use super::super::functions;
use super::super::values::Members;
use super::filters::{self, BlockFilter};
use super::marks::{Key, MARK, Node, NodeId, NodeKind, Scope, VALUE};
use super::text::{FrameId, Input, MAX_INPUTS, ReadFile, Told, Writer};
use crate::json::Pointer;

/// What is known of a value.
#[derive(Debug, Clone)]
pub(super) enum Known {
    /// A value of the data.
    Data(Arc<Pointer>),
    /// A text, byte by byte.
    Text(Arc<Told>),
}

/// A scope that the render entered.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) parent: Option<FrameId>,
    /// The tag that begins it; none for the template itself.
    pub(super) node: Option<NodeId>,
    /// The expression that called it, once it has ended; of a capture, the tag that wrote it first.
    pub(super) call: Option<NodeId>,
    /// The mark that was met before it.
    pub(super) before: Option<NodeId>,
}

/// The marks of one template and of all partials.
pub(super) struct Nodes {
    pub(super) shared: Arc<Vec<Node>>,
    pub(super) own: Vec<Node>,
}

impl Nodes {
    pub(super) fn get(&self, id: NodeId) -> &Node {
        let id = id as usize;
        self.shared.get(id).unwrap_or_else(|| &self.own[id - self.shared.len()])
    }

    /// The node that calls something by its name from where a render was before: the innermost around that place, else the next
    /// one behind it.
    pub(super) fn call_from(&self, before: NodeId, called: &str) -> Option<NodeId> {
        let from = self.get(before);
        let is_call = |node: &Node| match &node.kind {
            NodeKind::Call { name, .. } => name.strip_prefix('.').unwrap_or(name) == called,
            _ => false,
        };
        let all = (0..).zip(self.shared.iter().chain(&self.own));
        let calls = || all.clone().filter(|(_, node)| node.template == from.template && is_call(node));
        let around = |node: &Node| node.range.start <= from.range.start && from.range.end <= node.range.end;
        let around = calls().filter(|(id, node)| *id != before && around(node)).min_by_key(|(_, it)| it.range.len());
        let next = || calls().find(|(_, node)| node.range.start >= from.range.end).or_else(|| calls().last());
        around.or_else(next).map(|(id, _)| id)
    }
}

/// A render so far.
pub(super) struct Log {
    nodes: Arc<Nodes>,
    /// The output, and the captures that are open.
    open: Vec<Told>,
    pub(super) frames: Vec<Frame>,
    /// The frame that the render is in.
    pub(super) frame: FrameId,
    /// What is known of values, by their addresses: of this render's own, and of the data's.
    known: HashMap<usize, Known>,
    data: Arc<DataPlaces>,
    /// Addresses stay those of these values.
    kept: Vec<Value>,
    /// What the expressions of each macro that runs gave last.
    last: Vec<HashMap<NodeId, (Value, Option<Known>)>>,
    /// The expression that was looked at last.
    latest: Option<NodeId>,
    /// The capture that ended last, and its frame.
    captured: Option<(Arc<Told>, FrameId)>,
    /// The filters that the last capture goes through, and the tag that began it.
    filters: (Vec<BlockFilter>, Option<NodeId>),
    /// The templates that extend another one and have not ended yet, and where they are.
    extending: Vec<(u32, FrameId)>,
    /// The file that was read last.
    read: Option<(Arc<ReadFile>, usize)>,
    /// How much more may be kept, in bytes; 0 once it was too much, and nothing is followed any more.
    room: usize,
    /// The mark that was met last, also when nothing is followed any more.
    reached: Option<NodeId>,
    /// The next value that is written is that of a mark.
    silent: bool,
    /// The tag whose value is written next.
    tag: Option<NodeId>,
    /// The tag whose value could not be written.
    stopped: Option<NodeId>,
    emissions: u32,
    pub(super) branches: BTreeSet<NodeId>,
    /// How many bytes of output are enough.
    enough: usize,
}

thread_local! {
    /// The render that this thread follows.
    static LOG: RefCell<Option<Box<Log>>> = const { RefCell::new(None) };
}

/// Makes an environment tell what happens.
pub(super) fn install(environment: &mut Environment<'static>) {
    environment.add_filter(VALUE, |value: Value, id: NodeId| with(|log| log.value(value.clone(), id)).unwrap_or(value));
    environment.add_filter(MARK, |_: Value, id: NodeId| -> Result<Value, Error> {
        let is_enough = with(|log| {
            log.mark(id);
            log.is_enough()
        });
        match is_enough {
            Some(true) => Err(Error::new(ErrorKind::WriteFailure, "enough is written")),
            _ => Ok(Value::from(())),
        }
    });
    environment.set_formatter(|out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value| -> Result<(), Error> {
        if with(|log| std::mem::take(&mut log.silent)) == Some(true) {
            return Ok(());
        }
        let written = functions::emit(out, state, value);
        with(|log| match &written {
            Ok(()) => log.emit(value),
            Err(_) => log.stopped = log.tag.or(log.reached),
        });
        written
    });
}

/// Says that a prompt read a file.
pub(in super::super) fn note_read(file: impl FnOnce() -> ReadFile, len: usize) {
    with(|log| log.read = Some((Arc::new(file()), len)));
}

/// Tells the log of this thread, if there is one that is not listening already.
fn with<R>(tell: impl FnOnce(&mut Log) -> R) -> Option<R> {
    LOG.with(|log| log.try_borrow_mut().ok().and_then(|mut log| log.as_mut().map(|log| tell(log))))
}

/// Follows a render until so many bytes are written; gives what it told.
pub(super) fn follow(
    nodes: Arc<Nodes>,
    (root, data): (&Value, Option<&Arc<DataPlaces>>),
    prompt: Option<&Told>,
    enough: usize,
    render: impl FnOnce(),
) -> (Told, Log) {
    let mut log = Log { enough, ..Log::new(nodes) };
    match data {
        Some(data) => log.register_members(root, data),
        None => log.register_root(root),
    }
    log.register_prompt(root, prompt);
    let before = LOG.replace(Some(Box::new(log)));
    render();
    let mut log = LOG.replace(before).expect("nobody else takes it");
    log.open.truncate(1);
    let output = log.open.pop().unwrap_or_default();
    (output, *log)
}

/// The address of what a value holds, if it holds something elsewhere that stays where it is.
fn address(value: &Value) -> Option<usize> {
    if let Some(text) = value.as_str() {
        return Some(text.as_ptr() as usize);
    }
    let object = value.as_object()?;
    let list = || object.downcast_ref::<Vec<Value>>().map(|list| std::ptr::from_ref(list) as usize);
    object.downcast_ref::<Members>().map(|members| std::ptr::from_ref(members) as usize).or_else(list)
}

impl Log {
    fn new(nodes: Arc<Nodes>) -> Log {
        Log {
            nodes,
            open: vec![Told::default()],
            frames: vec![Frame { parent: None, node: None, call: None, before: None }],
            frame: 0,
            known: HashMap::new(),
            data: Arc::default(),
            kept: Vec::new(),
            last: vec![HashMap::new()],
            latest: None,
            captured: None,
            filters: (Vec::new(), None),
            extending: Vec::new(),
            read: None,
            room: MOST_KEPT,
            reached: None,
            silent: false,
            tag: None,
            stopped: None,
            emissions: 0,
            branches: BTreeSet::new(),
            enough: usize::MAX,
        }
    }

    /// The variables of a template: `ctx` is the data, others are members beside it.
    fn register_root(&mut self, root: &Value) {
        let Some(members) = root.downcast_object_ref::<Members>() else { return };
        let mut places = DataPlaces::default();
        for (name, value) in members {
            match name.as_str() {
                Some("ctx") => places.add(value, &Pointer::root()),
                // They are known by their tags.
                Some(name) if PROMPT_VARIABLES.iter().any(|(_, variable)| *variable == name) => {}
                Some(name) => places.add(value, &Pointer::root().member(name)),
                None => {}
            }
        }
        self.data = Arc::new(places);
    }

    /// The same where the places below `ctx` are known.
    fn register_members(&mut self, root: &Value, data: &Arc<DataPlaces>) {
        self.data = Arc::clone(data);
        let Ok(ctx) = root.get_attr("ctx") else { return };
        let members = ctx.downcast_object_ref::<Members>().into_iter().flatten();
        let members = members.filter_map(|(name, value)| Some((Pointer::root().member(name.as_str()?), value)));
        for (at, value) in members.chain([(Pointer::root(), &ctx)]) {
            if let Some(address) = address(value) {
                self.known.insert(address, Known::Data(Arc::new(at)));
            }
        }
    }

    /// The system prompt has writers of its own.
    fn register_prompt(&mut self, root: &Value, prompt: Option<&Told>) {
        let value = root.get_attr("ctx").and_then(|ctx| ctx.get_attr("system_prompt")).ok();
        let address = value.as_ref().filter(|value| value.as_str().is_some()).and_then(address);
        if let (Some(address), Some(prompt)) = (address, prompt) {
            self.known.insert(address, Known::Text(Arc::new(prompt.clone())));
        }
    }
}

/// Where values of the data are, by their addresses.
#[derive(Debug, Default)]
pub(in super::super) struct DataPlaces(HashMap<usize, Arc<Pointer>>);

impl DataPlaces {
    /// Adds a value and all that it holds.
    pub(in super::super) fn add(&mut self, value: &Value, at: &Pointer) {
        if let Some(object) = value.as_object() {
            if let Some(list) = object.downcast_ref::<Vec<Value>>() {
                list.iter().enumerate().for_each(|(index, element)| self.add(element, &at.element(index)));
            } else if let Some(members) = object.downcast_ref::<Members>() {
                let named = members.iter().filter_map(|(key, member)| Some((key.as_str()?, member)));
                named.for_each(|(key, member)| self.add(member, &at.member(key)));
            }
        }
        if let Some(address) = address(value) {
            self.0.insert(address, Arc::new(at.clone()));
        }
    }
}

/// Marks.
impl Log {
    fn mark(&mut self, id: NodeId) {
        self.silent = true;
        let before = self.reached.replace(id);
        if self.room == 0 {
            return;
        }
        let nodes = Arc::clone(&self.nodes);
        let node = nodes.get(id);
        match &node.kind {
            NodeKind::Raw(text) => {
                let writer = Writer::Template { template: node.template, at: node.range.start, len: text.len() };
                let mut told = Told::one(text, writer);
                (told.runs[0].frame, told.runs[0].tag) = (self.frame, Some(id));
                self.top().push(&told);
            }
            NodeKind::Enter(scope) => self.enter(id, scope, before),
            NodeKind::Leave { filters } => self.leave(filters),
            NodeKind::Drop => {
                self.leave(&[]);
                self.captured = None;
            }
            NodeKind::Include | NodeKind::CallBlock => self.push_frame(id, before),
            NodeKind::Included | NodeKind::CallBlockEnd => self.pop_frame(),
            NodeKind::Extends => {
                self.open.push(Told::default());
                self.extending.push((node.template, self.frame));
            }
            NodeKind::End if self.extending.pop_if(|at| *at == (node.template, self.frame)).is_some() => {
                self.open.pop();
            }
            NodeKind::Branch => drop(self.branches.insert(id)),
            _ => {}
        }
    }

    fn top(&mut self) -> &mut Told {
        if self.open.is_empty() {
            self.open.push(Told::default());
        }
        self.open.last_mut().expect("just pushed")
    }

    fn push_frame(&mut self, id: NodeId, before: Option<NodeId>) {
        let parent = Some(self.frame);
        self.frame = FrameId::try_from(self.frames.len()).unwrap_or(FrameId::MAX);
        self.frames.push(Frame { parent, node: Some(id), call: None, before });
    }

    fn pop_frame(&mut self) {
        self.frame = self.frames.get(self.frame as usize).and_then(|frame| frame.parent).unwrap_or(0);
    }

    fn enter(&mut self, id: NodeId, scope: &Scope, before: Option<NodeId>) {
        self.open.push(Told::default());
        self.push_frame(id, before);
        if matches!(scope, Scope::Macro(_) | Scope::Caller) {
            self.last.push(HashMap::new());
        }
    }

    fn leave(&mut self, filters: &[BlockFilter]) {
        let frame = self.frame;
        let entered = self.frames.get(frame as usize).and_then(|frame| frame.node);
        if let Some(NodeKind::Enter(Scope::Macro(_) | Scope::Caller)) = entered.map(|id| &self.nodes.get(id).kind) {
            self.last.pop();
        }
        self.pop_frame();
        let told = self.open.pop().unwrap_or_default();
        self.captured = Some((Arc::new(told), frame));
        self.filters = (filters.to_vec(), entered);
        self.tag = None;
    }
}

/// Values.
impl Log {
    fn known(&self, value: &Value) -> Option<Known> {
        let address = address(value)?;
        let data = || self.data.0.get(&address).map(|at| Known::Data(Arc::clone(at)));
        self.known.get(&address).cloned().or_else(data)
    }

    /// Remembers what an expression gave; a text that is known gets an address of its own.
    fn value(&mut self, value: Value, id: NodeId) -> Value {
        let nodes = Arc::clone(&self.nodes);
        let node = nodes.get(id);
        // A macro is called from where the render was before its defaults.
        if !node.is_default {
            self.reached = Some(id);
        }
        if self.room == 0 {
            return value;
        }
        let value = self.taken_apart(&value, node).unwrap_or(value);
        if self.room == 0 {
            self.give_up();
            return value;
        }
        let found = self.known(&value);
        let known = match found {
            Some(known) => Some(known),
            None => self.worked_out(&value, node, id),
        };
        if let (Some(Known::Text(told)), None) = (&known, self.known(&value)) {
            self.room = self.room.saturating_sub(2 * told.weight());
            if self.room == 0 {
                self.give_up();
                return value;
            }
        }
        let value = match (&known, value.as_str()) {
            (Some(known), Some(text)) if self.known(&value).is_none() => self.kept_text(text, known.clone()),
            _ => value,
        };
        self.read = None;
        self.latest = Some(id);
        self.tag = Some(id);
        if let Some(last) = self.last.last_mut() {
            last.insert(id, (value.clone(), known));
        }
        value
    }

    /// The tag at which a render stopped that reached a limit; none if the text that was written last tells.
    pub(super) fn stopped_at(&self) -> Option<NodeId> {
        self.stopped.or(self.reached.filter(|_| self.gave_up()))
    }

    /// Whether the render made too much to be followed.
    pub(super) fn gave_up(&self) -> bool {
        self.room == 0
    }

    /// Whether as much was written as is asked for.
    pub(super) fn is_enough(&self) -> bool {
        matches!(self.open.as_slice(), [output] if output.text.len() >= self.enough)
    }

    /// Forgets everything but what was written: a template that makes more and more of its texts is not followed on.
    fn give_up(&mut self) {
        self.open.truncate(1);
        *self = Log {
            room: 0,
            reached: self.reached,
            frames: std::mem::take(&mut self.frames),
            open: std::mem::take(&mut self.open),
            ..Log::new(Arc::clone(&self.nodes))
        };
    }

    fn kept_text(&mut self, text: &str, known: Known) -> Value {
        let value = Value::from(Arc::<str>::from(text));
        if let Some(address) = address(&value) {
            self.known.insert(address, known);
            self.kept.push(value.clone());
        }
        value
    }

    fn operand(&self, id: NodeId) -> Option<&(Value, Option<Known>)> {
        self.last.last()?.get(&id)
    }

    fn worked_out(&mut self, value: &Value, node: &Node, id: NodeId) -> Option<Known> {
        match &node.kind {
            NodeKind::Const => {
                let writer = Writer::Template { template: node.template, at: node.range.start, len: node.range.len() };
                let text = value.as_str().map(str::to_owned).or_else(|| functions::to_json(value).ok())?;
                Some(Known::Text(Arc::new(self.literal(&text, writer))))
            }
            NodeKind::Folder => {
                let writer = Writer::Template { template: node.template, at: node.range.start, len: node.range.len() };
                let mut told = Told::one(value.as_str()?, writer);
                told.runs[0].frame = self.frame;
                Some(Known::Text(Arc::new(told)))
            }
            NodeKind::Member { base, key } => self.member(*base, key),
            NodeKind::Join { left, right } => {
                let (left, right) = (self.told_of(*left)?, self.told_of(*right)?);
                let mut told = (*left).clone();
                told.push(&right);
                told_as(value, told)
            }
            NodeKind::Choice => {
                let (chosen, known) = self.operand(self.latest?)?;
                known.clone().filter(|_| chosen == value)
            }
            NodeKind::Slice { base } => self.told_of(*base).and_then(|told| part_of(value, &told)),
            NodeKind::Captured { filters } => self.captured_as(value, filters, Some(id)),
            NodeKind::Call { name, operands } => self.called(value, name, operands, id),
            _ => None,
        }
    }

    /// A literal of an expression; its node's range includes the quotes.
    fn literal(&self, text: &str, whole: Writer) -> Told {
        let writer = match whole {
            // Without escapes it stands between the quotes as it is.
            Writer::Template { template, at, len } if len == text.len() + 2 => {
                Writer::Template { template, at: at + 1, len: text.len() }
            }
            whole => whole,
        };
        let mut told = Told::one(text, writer);
        told.runs[0].frame = self.frame;
        told
    }

    fn member(&self, base: NodeId, key: &Key) -> Option<Known> {
        let Some(Known::Data(path)) = self.operand(base)?.1.as_ref() else { return None };
        let path = match key {
            Key::Name(name) => path.member(name),
            Key::Index(index) => path.element(*index),
            Key::Computed(id) => {
                let (key, _) = self.operand(*id)?;
                match (key.as_str(), key.as_usize()) {
                    (Some(name), _) => path.member(name),
                    (None, index) => path.element(index?),
                }
            }
        };
        Some(Known::Data(Arc::new(path)))
    }

    /// The text of what an expression gave, as it would be written.
    fn told_of(&self, id: NodeId) -> Option<Arc<Told>> {
        let (value, known) = self.operand(id)?;
        let text = value.as_str()?;
        Some(match known {
            Some(Known::Text(told)) => Arc::clone(told),
            Some(Known::Data(path)) => Arc::new(of_data(text, path)),
            None => Arc::new(self.computed(text, &[id])),
        })
    }

    fn computed(&self, text: &str, operands: &[NodeId]) -> Told {
        let mut from: Vec<Input> = Vec::new();
        for (_, known) in operands.iter().filter_map(|id| self.operand(*id)) {
            match known {
                Some(Known::Data(path)) => from.push(Input::Data(Arc::clone(path))),
                Some(Known::Text(told)) => from.extend(told.inputs().take(MAX_INPUTS)),
                None => {}
            }
            from.truncate(MAX_INPUTS);
        }
        let mut told = Told::one(text, Writer::Computed { from: from.into() });
        told.runs[0].frame = self.frame;
        told
    }

    /// What was captured last, behind its filters: what these make of it is written by the tag of the block.
    fn captured_as(&mut self, value: &Value, filters: &[BlockFilter], tag: Option<NodeId>) -> Option<Known> {
        let (told, _) = self.captured.take()?;
        let mut told = (*told).clone();
        for filter in filters {
            told = match (&*filter.name, value.as_str()) {
                ("tojson", _) => told.escaped(),
                ("trim", _) => trimmed(&told),
                ("string", _) => told,
                ("replace", _) if let [Some(from), Some(to)] = filter.arguments.as_slice() => {
                    filters::replaced(&told, &from.text, &self.literal(&to.text, to.writer()))
                }
                ("indent", Some(text)) if let Some(indented) = filters::indented(&told, text) => indented,
                (_, Some(text)) if text.eq_ignore_ascii_case(&told.text) => Told { text: text.to_owned(), ..told },
                (_, text) => {
                    let from: Arc<[Input]> = told.inputs().take(MAX_INPUTS).collect();
                    Told::one(text?, Writer::Computed { from })
                }
            };
        }
        self.claim(&mut told, tag);
        told_as(value, told)
    }

    /// Takes what no tag wrote yet for a tag's, here.
    fn claim(&mut self, told: &mut Told, tag: Option<NodeId>) {
        self.emissions += 1;
        for run in told.runs.iter_mut().filter(|run| run.tag.is_none() && run.recording == 0) {
            (run.tag, run.emission, run.frame) = (tag, self.emissions, self.frame);
        }
    }

    fn called(&mut self, value: &Value, name: &str, operands: &[NodeId], id: NodeId) -> Option<Known> {
        let text = value.as_str()?;
        if let Some((file, len)) = self.read.take().filter(|(_, len)| *len == text.len()) {
            debug_assert_eq!(len, text.len());
            return Some(Known::Text(Arc::new(Told::one(text, Writer::File { file, at: 0 }))));
        }
        if let Some((told, frame)) = self.captured.take_if(|(told, _)| told.text == text) {
            self.frames[frame as usize].call = Some(id);
            return Some(Known::Text(told));
        }
        let first = operands.first().copied();
        let known = match name {
            "tojson" => self.operand(first?).map(|(value, known)| self.json(value, known.as_ref(), 0)),
            "join" => self.joined(operands),
            "replace" => self.replaced(operands),
            "indent" => first.and_then(|first| filters::indented(&*self.told_of(first)?, text)),
            "trim"
            | "strip_signature_suffix"
            | "head_lines"
            | "basename"
            | "dirname"
            | "ext"
            | "string"
            | "tool_id"
            | "lower"
            | "upper"
            | "title"
            | "capitalize" => {
                let told = self.told_of(first?)?;
                return match name {
                    "trim" => told_as(value, trimmed(&told)),
                    "basename" | "ext" => ends_with(&told, text),
                    "lower" | "upper" | "title" | "capitalize" => in_other_case(&told, text),
                    _ => starts_with(&told, text),
                }
                .or_else(|| Some(Known::Text(Arc::new(self.computed(text, operands)))));
            }
            _ => None,
        };
        let known = known.and_then(|told| told_as(value, told));
        known.or_else(|| Some(Known::Text(Arc::new(self.computed(text, operands)))))
    }

    fn replaced(&self, operands: &[NodeId]) -> Option<Told> {
        let [text, from, to] = operands else { return None };
        let (from, _) = self.operand(*from)?;
        Some(filters::replaced(&*self.told_of(*text)?, from.as_str()?, &*self.told_of(*to)?))
    }

    /// The same list of texts, of which each is known as a part of the text that a call took apart.
    fn taken_apart(&mut self, value: &Value, node: &Node) -> Option<Value> {
        let NodeKind::Call { name, operands } = &node.kind else { return None };
        let told = self.told_of(*operands.first().filter(|_| matches!(&**name, "split" | "lines"))?)?;
        let object = value.as_object()?;
        let elements = object.downcast_ref::<Vec<Value>>()?;
        let texts: Option<Vec<&str>> = elements.iter().map(Value::as_str).collect();
        let parts: Vec<Option<Told>> = filters::parts(&told, texts?.into_iter()).collect();
        let weight: usize = parts.iter().flatten().map(Told::weight).sum();
        self.room = self.room.saturating_sub(2 * weight);
        if parts.len() < elements.len() || self.room == 0 {
            return None;
        }
        let known = elements.iter().zip(parts).map(|(element, part)| match part {
            Some(part) => self.kept_text(&part.text.clone(), Known::Text(Arc::new(part))),
            None => element.clone(),
        });
        Some(Value::from(known.collect::<Vec<Value>>()))
    }

    fn joined(&self, operands: &[NodeId]) -> Option<Told> {
        let (list, _) = self.operand(*operands.first()?)?;
        let between = operands.get(1).and_then(|&id| self.told_of(id));
        let mut told = Told::default();
        for (index, element) in list.try_iter().ok()?.enumerate() {
            if let Some(between) = between.as_ref().filter(|_| index > 0) {
                told.push(between);
            }
            let text = element.as_str()?;
            match self.known(&element) {
                Some(Known::Data(path)) => told.push(&of_data(text, &path)),
                Some(Known::Text(known)) => told.push(&known),
                None => told.push_one(text, Writer::Computed { from: Arc::new([]) }),
            }
        }
        Some(told)
    }

    /// A value as compact JSON, as `tojson` writes it.
    fn json(&self, value: &Value, known: Option<&Known>, depth: usize) -> Told {
        let unknown = |text: &str| Told::one(text, Writer::Computed { from: Arc::new([]) });
        match (value.as_str(), value.kind(), known) {
            (Some(_), _, Some(Known::Text(told))) => told.escaped(),
            (Some(text), _, Some(Known::Data(path))) => of_data(text, path).escaped(),
            (Some(text), _, None) => unknown(text).escaped(),
            _ if depth > crate::json::MAX_DEPTH => Told::default(),
            (None, ValueKind::Seq | ValueKind::Iterable, _) => of_leaf(self.list_json(value, known, depth), known),
            (None, ValueKind::Map, _) => of_leaf(self.map_json(value, known, depth), known),
            (None, _, known) => {
                let text = functions::to_json(value).unwrap_or_default();
                match known {
                    Some(Known::Data(path)) => of_data(&text, path),
                    _ => unknown(&text),
                }
            }
        }
    }

    fn list_json(&self, value: &Value, known: Option<&Known>, depth: usize) -> Told {
        let mut told = Told::one("[", Writer::Tag);
        for (index, element) in value.try_iter().into_iter().flatten().enumerate() {
            if index > 0 {
                told.push_one(",", Writer::Tag);
            }
            told.push(&self.inner_json(&element, known, |path| path.element(index), depth));
        }
        told.push_one("]", Writer::Tag);
        told
    }

    fn map_json(&self, value: &Value, known: Option<&Known>, depth: usize) -> Told {
        let mut told = Told::one("{", Writer::Tag);
        for (index, key) in value.try_iter().into_iter().flatten().enumerate() {
            let name = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            let Ok(member) = value.get_item(&key) else { continue };
            let lead = if index > 0 { "," } else { "" };
            let json = serde_json::to_string(&name).expect("a string serialises into memory");
            told.push_one(&format!("{lead}{json}:"), Writer::Tag);
            told.push(&self.inner_json(&member, known, |path| path.member(&name), depth));
        }
        told.push_one("}", Writer::Tag);
        told
    }

    /// A part of a value: known by itself, or as a part of data.
    fn inner_json(
        &self,
        value: &Value,
        outer: Option<&Known>,
        at: impl FnOnce(&Pointer) -> Pointer,
        depth: usize,
    ) -> Told {
        let part = || match outer {
            Some(Known::Data(path)) => Some(Known::Data(Arc::new(at(path)))),
            _ => None,
        };
        let known = self.known(value).or_else(part);
        self.json(value, known.as_ref(), depth + 1)
    }
}

/// Output.
impl Log {
    /// What a tag wrote.
    fn emit(&mut self, value: &Value) {
        if self.room == 0 {
            return;
        }
        let text = match value.kind() {
            ValueKind::Bool | ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
                functions::to_json(value).unwrap_or_default()
            }
            _ => value.to_string(),
        };
        let tag = self.tag.take();
        let by = tag.or_else(|| self.block());
        let mut told = match self.told_to_write(value, &text, tag).filter(|told| told.text == text) {
            Some(told) => told,
            None => self.computed(&text, tag.map(|tag| [tag]).as_ref().map_or(&[], |tag| tag)),
        };
        self.claim(&mut told, by);
        if let Some(tag) = tag {
            self.note_captures(&told, tag);
        }
        if told.text.is_empty() {
            let mut run = Told::one("", Writer::Computed { from: Arc::new([]) }).runs.remove(0);
            (run.tag, run.emission, run.frame) = (by, self.emissions, self.frame);
            return self.top().push_nothing(run);
        }
        self.top().push(&told);
    }

    /// Notes that a tag writes what was captured before.
    fn note_captures(&mut self, told: &Told, tag: NodeId) {
        let here = self.frame;
        for runs in told.runs.chunk_by(|one, next| one.frame == next.frame && one.recording == next.recording) {
            let run = &runs[0];
            let mut next = Some(run.frame).filter(|frame| *frame != here && run.recording == 0);
            while let Some(frame) = next.and_then(|id| self.frames.get_mut(id as usize)) {
                next = frame.parent.filter(|parent| *parent != here);
                let is_set = |id| matches!(self.nodes.get(id).kind, NodeKind::Enter(Scope::Set));
                if frame.call.is_none() && frame.node.is_some_and(is_set) {
                    frame.call = Some(tag);
                }
            }
        }
    }

    /// The tag of the `call` or `filter` block that writes now.
    fn block(&self) -> Option<NodeId> {
        let around = self.frames.get(self.frame as usize).and_then(|frame| frame.node);
        around.filter(|id| matches!(self.nodes.get(*id).kind, NodeKind::CallBlock)).or(self.filters.1)
    }

    fn told_to_write(&mut self, value: &Value, text: &str, tag: Option<NodeId>) -> Option<Told> {
        let Some(tag) = tag else {
            // The text of a `filter` or `call` block.
            let (filters, opened) = std::mem::take(&mut self.filters);
            let Some(Known::Text(told)) = self.captured_as(value, &filters, opened) else { return None };
            return Some((*told).clone());
        };
        let (_, known) = self.operand(tag)?;
        match known.as_ref()? {
            Known::Text(told) => Some((**told).clone()),
            Known::Data(path) if value.as_object().is_none() => Some(of_data(text, path)),
            known @ Known::Data(_) => Some(self.json(value, Some(known), 0)),
        }
    }
}

/// How much one render may keep beside what it makes, in bytes.
const MOST_KEPT: usize = 96 * 1024 * 1024;

/// A list or an object without anything in it is a leaf.
fn of_leaf(told: Told, known: Option<&Known>) -> Told {
    match (told.text.as_str(), known) {
        ("[]" | "{}", Some(Known::Data(path))) => of_data(&told.text, path),
        _ => told,
    }
}

fn of_data(text: &str, path: &Arc<Pointer>) -> Told {
    Told::one(text, Writer::Data { path: Arc::clone(path), at: 0 })
}

fn told_as(value: &Value, told: Told) -> Option<Known> {
    (value.as_str()? == told.text).then(|| Known::Text(Arc::new(told)))
}

fn trimmed(told: &Told) -> Told {
    let start = told.text.len() - told.text.trim_start().len();
    let len = told.text.trim().len();
    told.part(start..start + len)
}

/// A text that differs in the case of its letters only: byte by byte.
fn in_other_case(told: &Told, text: &str) -> Option<Known> {
    let same = text.eq_ignore_ascii_case(&told.text);
    same.then(|| Known::Text(Arc::new(Told { text: text.to_owned(), ..told.clone() })))
}

fn starts_with(told: &Told, text: &str) -> Option<Known> {
    told.text.starts_with(text).then(|| Known::Text(Arc::new(told.part(0..text.len()))))
}

fn ends_with(told: &Told, text: &str) -> Option<Known> {
    let start = told.text.strip_suffix(text)?.len();
    Some(Known::Text(Arc::new(told.part(start..told.text.len()))))
}

/// The only place where a text stands in another.
fn part_of(value: &Value, told: &Told) -> Option<Known> {
    let text = value.as_str()?;
    let mut found = told.text.match_indices(text);
    match (found.next(), found.next()) {
        (Some((at, _)), None) if !text.is_empty() => Some(Known::Text(Arc::new(told.part(at..at + text.len())))),
        _ => None,
    }
}
