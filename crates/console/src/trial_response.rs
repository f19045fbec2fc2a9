//! `/pipelines`: the page, and the trials that its form asks for.

use crate::capture::capture;
use crate::console::{Console, DATA_HEADERS, FORM_HEADERS, LONGEST_ANSWER, LONGEST_FORM, failed};
use crate::html::Escaped;
use crate::page_buffer::{PageBuffer, PageError};
use crate::pipelines_page::{self, AROUND, ListedPipeline};
use crate::process::{ProcessError, ProcessInput, status_of};
use crate::trial::{
    Fragment, LoadedSteps, NOT_SHOWN, Taken, TrialForm, TrialRequest, form_markup, form_texts, write_form,
};
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use tidegate_arena::{Bytes, Window};
use tidegate_http1::{Body, Head, Reply};
use tidegate_journal::Signal;

const HTML: &str = "text/html; charset=utf-8";
const BUSY: &str = "somebody is trying steps now, and one can at a time, for some seconds; try again";
const FORMS_BUSY: &str = "the memory for forms is in use by another request, for some seconds; try again\n";
const NO_FORM: &str =
    "send a form (multipart/form-data), or JSON with `steps` and `items` (application/json)\n";
const TOO_LONG: &str = "the page would be longer than the 512 KiB that the console may use";
/// The most pipelines whose steps the form offers.
const MOST_OFFERED: usize = 24;

/// Lets one trial run at a time, and counts how much memory forms may take that are on their way: that of the longest of them in
/// all, so that a slow one leaves the turn to others, and heads keep their memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrialTurns(Arc<TurnState>);

#[derive(Debug, Default)]
struct TurnState {
    is_taken: AtomicBool,
    form_bytes: AtomicUsize,
}

/// The turn of a trial. It ends with this.
#[derive(Debug)]
pub(crate) struct TrialTurn(Arc<TurnState>);

/// A form's claim to memory. It ends with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct FormClaim(Arc<ClaimedBytes>);

#[derive(Debug)]
struct ClaimedBytes {
    turns: Arc<TurnState>,
    bytes: usize,
}

impl TrialTurns {
    /// The turn, if nobody has it.
    pub(crate) fn take(&self) -> Option<TrialTurn> {
        (!self.0.is_taken.swap(true, Acquire)).then(|| TrialTurn(Arc::clone(&self.0)))
    }

    /// Claims the memory of the form behind `head`, if other forms leave as much. One that is too long claims that of the longest.
    pub(crate) fn claim(&self, head: &Head<'_>) -> Result<FormClaim, Reply> {
        let length = head.header("content-length").and_then(|value| str::from_utf8(value).ok()?.parse().ok());
        let bytes = length.unwrap_or(LONGEST_FORM).min(LONGEST_FORM);
        let all = |used: usize| Some(used + bytes).filter(|all| *all <= LONGEST_FORM);
        match self.0.form_bytes.fetch_update(Relaxed, Relaxed, all) {
            Ok(_) => Ok(FormClaim(Arc::new(ClaimedBytes { turns: Arc::clone(&self.0), bytes }))),
            Err(_) => Err(Reply::new(503).retry_after(5).text(FORMS_BUSY)),
        }
    }
}

impl FormClaim {
    /// The most bytes of the form.
    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes
    }
}

impl Drop for TrialTurn {
    fn drop(&mut self) {
        self.0.is_taken.store(false, Release);
    }
}

impl Drop for ClaimedBytes {
    fn drop(&mut self) {
        self.turns.form_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

/// Options of a request for a trial, beside its form.
#[derive(Debug, Clone)]
pub(crate) struct TrialRoute {
    content_type: String,
    /// The pipeline whose steps take the place of those in the form.
    load: Option<String>,
    /// The signal of the items that take the place of those in the form.
    take: Option<Signal>,
}

impl TrialRoute {
    pub(crate) fn of(head: &Head<'_>) -> Result<TrialRoute, Reply> {
        let content_type = head.header("content-type").and_then(|value| std::str::from_utf8(value).ok());
        let content_type = content_type.filter(|value| TrialForm::is_readable(value));
        let content_type = content_type.ok_or_else(|| Reply::new(415).text(NO_FORM))?;
        let mut route = TrialRoute { content_type: content_type.to_owned(), load: None, take: None };
        for (name, value) in parameters(head) {
            match (name, value) {
                ("load", name) if is_name(name) => route.load = Some(name.to_owned()),
                ("take", "logs") => route.take = Some(Signal::Logs),
                ("take", "traces") => route.take = Some(Signal::Traces),
                ("take", "metrics") => route.take = Some(Signal::Metrics),
                _ => {
                    return Err(Reply::new(400)
                        .text("the parameters are load=PIPELINE and take=logs, traces or metrics\n"));
                }
            }
        }
        Ok(route)
    }

    /// The pipeline whose steps the page begins with.
    pub(crate) fn load_of(head: &Head<'_>) -> Result<Option<String>, Reply> {
        let mut load = None;
        for (name, value) in parameters(head) {
            match name {
                "load" if is_name(value) => load = Some(value.to_owned()),
                _ => return Err(Reply::new(400).text("the only parameter is load=PIPELINE\n")),
            }
        }
        Ok(load)
    }
}

fn parameters<'a>(head: &Head<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let pairs = head.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Whether a text can be the name of a pipeline.
fn is_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=64).contains(&name.len()) && name.bytes().all(legal)
}

impl Console {
    /// The page, with a form that is empty but for the steps of the pipeline `load`.
    pub(crate) fn pipelines(&self, load: Option<&str>) -> Reply {
        let steps = match load.map(|name| self.gateway().steps_of(name)) {
            None => String::new(),
            Some(Some(steps)) => steps,
            Some(None) => {
                let words =
                    "there is no such pipeline, or its steps are too long for a form: see /pipelines\n";
                return Reply::new(404).headers(&DATA_HEADERS).text(words);
            }
        };
        let pipelines = self.gateway().pipelines();
        let mut form = Fragment::new(LONGEST_ANSWER - AROUND);
        write_form(&TrialForm { steps, items: String::new() }, &offered(pipelines.as_deref()), &mut form);
        let made = PageBuffer::take(self.arena()).and_then(|mut page| {
            let written = self.begin(pipelines.as_deref(), &mut page);
            let written = written.and_then(|()| fmt::Write::write_str(&mut page, &form.into_text()));
            let written = written.and_then(|()| pipelines_page::end(&mut page));
            page.whole(written)
        });
        match made {
            Ok(window) => Reply::new(200).content_type(HTML).headers(&FORM_HEADERS).content(window),
            Err(failure) => failed(failure, TOO_LONG),
        }
    }

    fn begin(&self, pipelines: Option<&[ListedPipeline]>, page: &mut PageBuffer) -> fmt::Result {
        self.showing(|status| pipelines_page::begin(status, pipelines, page))
    }

    /// Answers with what comes of a trial: a page, or JSON where that was sent.
    pub(crate) async fn try_out(&self, route: TrialRoute, body: Body) -> Reply {
        let body = Arc::new(body);
        let failure = match self.trials().take() {
            None => TrialFailure { status: 503, retry_after: Some(5), words: BUSY.to_owned() },
            Some(_turn) => match self.run_trial(&route, &body).await {
                Ok(reply) => return reply,
                Err(failure) => failure,
            },
        };
        self.failed_trial(&failure, &route.content_type, &body)
    }

    async fn run_trial(&self, route: &TrialRoute, body: &Arc<Body>) -> Result<Reply, TrialFailure> {
        let is_json = TrialForm::is_json(&route.content_type);
        let pipelines = self.gateway().pipelines();
        let taken = match route.take {
            Some(signal) => Some(capture(self.gateway().tap(), signal, self.arena()).await),
            None => None,
        };
        let load = route.load.clone();
        let request = TrialRequest {
            content_type: route.content_type.clone(),
            form_bytes: body.len(),
            load: load.map(|name| LoadedSteps { steps: self.gateway().steps_of(&name), name }),
            taken: taken.as_ref().map(|taken| Taken { words: taken.words.clone() }),
            pipelines: offered(pipelines.as_deref()),
            most: LONGEST_ANSWER - AROUND,
        };
        let mut input = vec![ProcessInput::Text(line(&request)), ProcessInput::Body(Arc::clone(body))];
        if let Some(window) =
            taken.and_then(|taken| taken.page).and_then(|page| page.whole(Ok::<(), ()>(())).ok())
        {
            input.push(ProcessInput::Items(window));
        }
        let mut answer =
            AnswerWriter { console: self, pipelines, is_json, status: 500, page: None, failure: None };
        let ended = self.gateway().trial(input, &mut |bytes| answer.push(bytes)).await;
        answer.end(ended)
    }

    /// Says why there are no results: on the page, with the form as it was sent, so that nothing has to be pasted again; to programs, and
    /// where there is no room for a page, in plain text.
    fn failed_trial(&self, failure: &TrialFailure, content_type: &str, body: &[u8]) -> Reply {
        let reply = Reply::new(failure.status);
        let reply = match failure.retry_after {
            Some(seconds) => reply.retry_after(seconds),
            None => reply,
        };
        let page =
            form_texts(content_type, body).and_then(|texts| self.form_page(&failure.words, texts).ok());
        match page {
            Some(page) => reply.content_type(HTML).headers(&FORM_HEADERS).content(page),
            None => reply.headers(&DATA_HEADERS).content(format!("{}\n", failure.words)),
        }
    }

    /// The page with a form, and `words` below it. It takes no memory but that of answers.
    fn form_page(&self, words: &str, [steps, items]: [&str; 2]) -> Result<Window, PageError> {
        let pipelines = self.gateway().pipelines();
        let mut page = PageBuffer::take(self.arena())?;
        let mut written = self.begin(pipelines.as_deref(), &mut page);
        if written.is_ok() {
            let (before, names) = (page.len(), offered(pipelines.as_deref()));
            // Less of the form where its markup is longer than a page may be.
            for (texts, note) in [([steps, items], ""), ([steps, ""], NOT_SHOWN), ([""; 2], NOT_SHOWN)] {
                page.truncate(before);
                written = rest_of_page(texts, note, words, &names, &mut page);
                if written.is_ok() {
                    break;
                }
            }
        }
        page.whole(written)
    }
}

fn rest_of_page(
    texts: [&str; 2],
    note: &str,
    words: &str,
    pipelines: &[String],
    page: &mut PageBuffer,
) -> fmt::Result {
    form_markup(texts, pipelines, page)?;
    let words = Escaped(words);
    write!(
        page,
        "{note}<section id=\"results\">\n<h2>Results</h2>\n<p class=\"say bad\">{words}</p>\n</section>\n"
    )?;
    pipelines_page::end(page)
}

/// Why a trial has no results.
struct TrialFailure {
    status: u16,
    retry_after: Option<u32>,
    words: String,
}

impl From<ProcessError> for TrialFailure {
    fn from(error: ProcessError) -> TrialFailure {
        let (status, retry_after) = match error {
            ProcessError::Memory => (503, Some(5)),
            ProcessError::Late | ProcessError::Ended(_) => (422, None),
            ProcessError::Start(_) => (500, None),
        };
        TrialFailure { status, retry_after, words: words(&error) }
    }
}

/// The names that the form has buttons for.
fn offered(pipelines: Option<&[ListedPipeline]>) -> Vec<String> {
    let names = pipelines.unwrap_or_default().iter().map(|pipeline| pipeline.name.clone());
    names.take(MOST_OFFERED).collect()
}

fn line(request: &TrialRequest) -> String {
    let mut line = serde_json::to_string(request).unwrap_or_default();
    line.push('\n');
    line
}

/// The answer of a trial, as it comes in. The page begins with its first part: the memory is not held while a trial runs.
struct AnswerWriter<'a> {
    console: &'a Console,
    pipelines: Option<Vec<ListedPipeline>>,
    is_json: bool,
    status: u16,
    page: Option<PageBuffer>,
    failure: Option<PageError>,
}

impl AnswerWriter<'_> {
    fn push(&mut self, bytes: &[u8]) -> bool {
        if self.page.is_none() {
            // The first part is the status.
            self.status = status_of(bytes);
            match PageBuffer::take(self.console.arena()) {
                Ok(mut page) => {
                    if !self.is_json && self.console.begin(self.pipelines.as_deref(), &mut page).is_err() {
                        self.failure = Some(PageError::TooLong);
                    }
                    self.page = Some(page);
                }
                Err(failure) => self.failure = Some(failure),
            }
            return self.failure.is_none();
        }
        let has_room = self.page.as_mut().is_some_and(|page| page.bytes(bytes));
        if !has_room {
            self.failure = Some(PageError::TooLong);
        }
        has_room
    }

    fn end(self, ended: Result<(), ProcessError>) -> Result<Reply, TrialFailure> {
        let too_long = || TrialFailure { status: 500, retry_after: None, words: TOO_LONG.to_owned() };
        match self.failure {
            Some(PageError::TooLong) => return Err(too_long()),
            Some(failure) => return Ok(failed(failure, TOO_LONG)),
            None => ended?,
        }
        let mut page = self.page.ok_or(ProcessError::Ended(0))?;
        let written = if self.is_json { Ok(()) } else { pipelines_page::end(&mut page) };
        let (content_type, headers): (_, &'static [_]) =
            if self.is_json { ("application/json", &DATA_HEADERS) } else { (HTML, &FORM_HEADERS) };
        let status = if self.status == 400 { 400 } else { 200 };
        match page.whole(written) {
            Ok(window) => Ok(Reply::new(status).content_type(content_type).headers(headers).content(window)),
            Err(PageError::TooLong) => Err(too_long()),
            Err(failure) => Ok(failed(failure, TOO_LONG)),
        }
    }
}

/// The message for a trial that gave no answer.
fn words(error: &ProcessError) -> String {
    match error {
        ProcessError::Memory => {
            "requests and sinks have the memory that a trial needs; try again later, or raise `memory`"
                .to_owned()
        }
        ProcessError::Late => {
            "the trial took too long and was ended: try fewer items, or simpler steps".to_owned()
        }
        ProcessError::Ended(bytes) => format!(
            "the trial ended without an answer, most likely because it needed more than the {} of memory that it had: try \
             fewer items, or fewer and simpler patterns",
            Bytes(*bytes)
        ),
        ProcessError::Start(why) => format!("the trial could not be started: {why}"),
    }
}
