//! The resources of an API, and which of them a request is about.
//!
//! A resource is a record and the engine that keeps its rows; whoever owns the rows says whether and how they
//! are changed through here. Everything here blocks on the engine.

use std::fmt;
use std::sync::Arc;

use http::header::{ALLOW, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use tokio::sync::Semaphore;

use super::action::ActionDoc;
use super::events::FOLLOWERS;
use super::question::decoded_path;
use super::repeat::Repeats;
use super::sql::Inquiry;
use super::{Problem, item, list, select, write};
use crate::http::{Body, empty};
use crate::orm::{Cell, CellSource, Condition, Engine, Feed, FieldError, Record, TableSpec};

/// Rows, wherever they are kept.
pub type Rows = Arc<dyn Engine + Send + Sync>;

/// All resources, and what else can be done.
#[derive(Debug)]
pub struct Api {
    resources: Vec<Resource>,
    pub(super) actions: Vec<ActionDoc>,
    pub(super) inquiry: Option<Inquiry>,
    pub(super) followers: Arc<Semaphore>,
    pub(super) repeats: Repeats,
    feed: Feed,
}

/// The rows of one record.
pub struct Resource {
    pub(super) table: &'static TableSpec,
    pub(super) rows: Rows,
    pub(super) writes: Writes,
    pub(super) lookups: Vec<Lookup>,
    /// Whether its changes are told by the feed.
    pub(super) is_told: bool,
    /// Whether the cells make a record.
    pub(super) check: fn(&[Cell<'static>]) -> Result<(), FieldError>,
}

/// How rows are changed through here.
pub(super) enum Writes {
    /// Not at all, but for what its owner deletes.
    Owner { delete: Option<Delete> },
    /// Each by whoever may.
    Rows,
}

/// Deletes the row of a key through its owner; false if there is none.
pub type Delete = Box<dyn Fn(&[Cell<'static>]) -> Result<bool, Problem> + Send + Sync>;

/// A name that rows are found by though it is none of their fields.
pub(super) struct Lookup {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    pub(super) condition: Box<dyn Fn(&str) -> Condition + Send + Sync>,
}

/// A request, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its path, as it came.
    pub path: &'a str,
    /// Its query, as it came.
    pub query: &'a str,
    /// Its fields.
    pub headers: &'a HeaderMap,
    /// Its body.
    pub body: &'a [u8],
}

// === impl Resource ===

impl Resource {
    /// The rows of `R`, to be read.
    pub fn of<R: Record>(rows: Rows) -> Self {
        let check = |cells: &[Cell<'static>]| R::decode(cells).map(drop);
        let writes = Writes::Owner { delete: None };
        Self { table: R::table(), rows, writes, lookups: Vec::new(), is_told: true, check }
    }

    /// Rows can be added, changed and deleted by whoever may. Their table counts versions.
    #[must_use]
    pub fn writable(mut self) -> Self {
        self.writes = Writes::Rows;
        self
    }

    /// Rows can be deleted through their owner.
    #[must_use]
    pub fn deleted_by(
        mut self,
        delete: impl Fn(&[Cell<'static>]) -> Result<bool, Problem> + Send + Sync + 'static,
    ) -> Self {
        self.writes = Writes::Owner { delete: Some(Box::new(delete)) };
        self
    }

    /// Its rows live outside the databases, so their changes are not told.
    #[must_use]
    pub const fn untold(mut self) -> Self {
        self.is_told = false;
        self
    }

    /// Rows are found by another name too, as `name=eq.text`.
    #[must_use]
    pub fn found_by(
        mut self,
        name: &'static str,
        doc: &'static str,
        condition: impl Fn(&str) -> Condition + Send + Sync + 'static,
    ) -> Self {
        self.lookups.push(Lookup { name, doc, condition: Box::new(condition) });
        self
    }

    /// The last part of its path.
    pub const fn name(&self) -> &'static str {
        self.table.name
    }

    pub(super) fn methods(&self, of_item: bool) -> Vec<&'static str> {
        let mut methods = vec!["GET", "HEAD", "OPTIONS"];
        match (&self.writes, of_item) {
            (Writes::Rows, false) => methods.push("POST"),
            (Writes::Rows, true) => methods.extend(["PUT", "PATCH", "DELETE"]),
            (Writes::Owner { delete: Some(_) }, true) => methods.push("DELETE"),
            (Writes::Owner { .. }, _) => {}
        }
        methods
    }

    /// All cells of the row of a key.
    pub(super) fn row(&self, key: &[Cell<'static>]) -> Result<Option<Vec<Cell<'static>>>, Problem> {
        let mut found = None;
        let cells = |row: &dyn CellSource| {
            (0..self.table.columns.len()).map(|at| row.cell(at).into_owned()).collect()
        };
        self.rows.get(self.table, key, &mut |row| found = Some(cells(row)))?;
        Ok(found)
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("name", &self.table.name).finish_non_exhaustive()
    }
}

// === impl Api ===

impl Api {
    /// No resources; what changes is told by this feed.
    pub fn new(feed: Feed) -> Self {
        let followers = Arc::new(Semaphore::new(FOLLOWERS));
        let (resources, actions, repeats) = (Vec::new(), Vec::new(), Repeats::default());
        Self { resources, actions, inquiry: None, followers, repeats, feed }
    }

    /// Administrators may ask these files in SQL.
    #[must_use]
    pub fn inquiring(mut self, inquiry: Inquiry) -> Self {
        self.inquiry = Some(inquiry);
        self
    }

    /// One resource more.
    #[must_use]
    pub fn with(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// What can be done besides.
    #[must_use]
    pub fn acting(mut self, actions: impl IntoIterator<Item = ActionDoc>) -> Self {
        self.actions.extend(actions);
        self
    }

    /// All resources.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// Where changes are told.
    pub const fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Answers a request for what lies below the API at this path, such as `blobs` or `blobs/sha256:…`. Blocks.
    pub fn answer(&self, below: &str, ask: &Ask<'_>) -> Response<Body> {
        let state = self.repeatable(below, ask);
        let response = self.answer_anew(below, ask);
        if let Some(state) = state {
            self.keep(ask, state, &response);
        }
        response
    }

    fn answer_anew(&self, below: &str, ask: &Ask<'_>) -> Response<Body> {
        let mut parts = below.trim_start_matches('/').splitn(2, '/');
        match (parts.next().unwrap_or_default(), parts.next()) {
            ("batch", None) => self.batch(ask),
            ("sql", None) => self.sql(ask),
            (name, None) => self.collection(name, ask),
            (name, Some(key)) => match decoded_path(key) {
                Ok(key) => self.item(name, &key, ask),
                Err(problem) => problem.into_response(),
            },
        }
    }

    /// Answers a request for a whole resource: its list, or a new row. Blocks.
    fn collection(&self, name: &str, ask: &Ask<'_>) -> Response<Body> {
        self.respond(name, None, ask, |resource| match (ask.method, &resource.writes) {
            (&Method::GET | &Method::HEAD, _) => Some(list::answer(self, resource, ask)),
            (&Method::POST, Writes::Rows) => Some(write::create(resource, ask)),
            _ => None,
        })
    }

    /// Answers a request for one row. Blocks.
    fn item(&self, name: &str, key: &str, ask: &Ask<'_>) -> Response<Body> {
        self.respond(name, Some(key), ask, |resource| match (ask.method, &resource.writes) {
            (&Method::GET | &Method::HEAD, _) => Some(item::answer(self, resource, key, ask)),
            (&Method::PUT, Writes::Rows) => Some(write::replace(resource, key, ask)),
            (&Method::PATCH, Writes::Rows) => Some(write::change(resource, key, ask)),
            (&Method::DELETE, Writes::Rows | Writes::Owner { delete: Some(_) }) => {
                Some(write::delete(resource, key, ask))
            }
            _ => None,
        })
    }

    fn respond(
        &self,
        name: &str,
        key: Option<&str>,
        ask: &Ask<'_>,
        answer: impl FnOnce(&Resource) -> Option<Result<Response<Body>, Problem>>,
    ) -> Response<Body> {
        let Some((_, resource)) = self.find(name) else {
            let names = self.resources.iter().map(|resource| resource.name().to_owned()).collect();
            let problem = Problem::new(StatusCode::NOT_FOUND, "not-found", "There is no such thing");
            return problem.detail("there is no such resource").field("path").allowed(names).into_response();
        };
        if ask.method == Method::OPTIONS {
            let mut response = Response::new(empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            self.say_allowed(resource, key.is_some(), response.headers_mut());
            return response;
        }
        match answer(resource) {
            Some(Ok(response)) => response,
            Some(Err(problem)) => problem.into_response(),
            None => {
                let title = "Not by this method";
                let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", title);
                let mut response = problem.into_response();
                self.say_allowed(resource, key.is_some(), response.headers_mut());
                response
            }
        }
    }

    /// The resource of this name, and its place.
    pub(super) fn find(&self, name: &str) -> Option<(usize, &Resource)> {
        self.resources.iter().enumerate().find(|(_, resource)| resource.name() == name)
    }

    pub(super) fn at(&self, place: usize) -> Option<&Resource> {
        self.resources.get(place)
    }

    /// The names of the resources that one leads to, or that lead to it.
    pub(super) fn neighbours<'a>(&'a self, of: &'a Resource) -> impl Iterator<Item = &'static str> + 'a {
        self.resources.iter().filter(|other| select::link(of, other).is_some()).map(Resource::name)
    }

    fn say_allowed(&self, resource: &Resource, of_item: bool, fields: &mut HeaderMap) {
        let path = format!("/{}{}", resource.name(), if of_item { "/{key}" } else { "" });
        let further = self.actions.iter().filter(|action| action.path == path);
        let mut methods = resource.methods(of_item);
        methods.extend(further.map(|action| action.method));
        methods.dedup();
        // names of methods are ASCII
        if let Ok(value) = HeaderValue::from_str(&methods.join(", ")) {
            fields.insert(ALLOW, value);
        }
    }
}

/// A problem with the methods that would be none.
pub(super) fn allowing(problem: Problem, methods: &'static str) -> Response<Body> {
    let mut response = problem.into_response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}
