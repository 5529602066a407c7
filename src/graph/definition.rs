//! A graph: named nodes, checked when it is built.

use std::{collections::BTreeMap, fmt};

use super::node::{Listener, Node, State};

/// Nodes by name, with the node at which a turn begins.
pub struct Graph<S: State> {
    name: &'static str,
    start: &'static str,
    listener: Box<dyn Listener<S>>,
    nodes: BTreeMap<&'static str, Box<dyn Node<S>>>,
}

impl<S: State> Graph<S> {
    /// Begins a graph whose turns start at `start`. `listener` handles events for which no node
    /// runs.
    pub fn builder(name: &'static str, start: &'static str, listener: impl Listener<S> + 'static) -> GraphBuilder<S> {
        GraphBuilder { name, start, listener: Box::new(listener), nodes: Vec::new() }
    }

    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the node at which a turn begins.
    pub fn start(&self) -> &'static str {
        self.start
    }

    /// Returns the listener, which handles events for which no node runs.
    pub fn listener(&self) -> &dyn Listener<S> {
        &*self.listener
    }

    /// Returns the node with this name.
    pub fn node(&self, name: &str) -> Option<&dyn Node<S>> {
        self.nodes.get(name).map(AsRef::as_ref)
    }
}

impl<S: State> fmt::Debug for Graph<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("name", &self.name).field("nodes", &self.nodes.keys()).finish()
    }
}

/// A builder of a [`Graph`].
pub struct GraphBuilder<S: State> {
    name: &'static str,
    start: &'static str,
    listener: Box<dyn Listener<S>>,
    nodes: Vec<Box<dyn Node<S>>>,
}

impl<S: State> GraphBuilder<S> {
    /// Adds a node.
    pub fn node(mut self, node: impl Node<S> + 'static) -> Self {
        self.nodes.push(Box::new(node));
        self
    }

    /// Checks and returns the graph.
    ///
    /// # Errors
    ///
    /// [`DefinitionError`] if a name is used twice, a target does not exist, or a node cannot be
    /// reached.
    pub fn build(self) -> Result<Graph<S>, DefinitionError> {
        let mut nodes = BTreeMap::new();
        for node in self.nodes {
            let name = node.name();
            if nodes.insert(name, node).is_some() {
                return Err(DefinitionError::Twice(name));
            }
        }
        let mut reached = Vec::new();
        let mut next = vec![self.start];
        while let Some(name) = next.pop() {
            let node = nodes.get(name).ok_or(DefinitionError::NoSuchNode(name))?;
            if !reached.contains(&name) {
                reached.push(name);
                next.extend(node.targets());
            }
        }
        match nodes.keys().find(|name| !reached.contains(name)) {
            Some(name) => Err(DefinitionError::Unreachable(name)),
            None => Ok(Graph { name: self.name, start: self.start, listener: self.listener, nodes }),
        }
    }
}

/// The reason why a graph is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// Two nodes have this name.
    #[error("two nodes are called `{0}`")]
    Twice(&'static str),
    /// A transition leads to a node that does not exist.
    #[error("there is no node `{0}`, but something leads to it")]
    NoSuchNode(&'static str),
    /// No transition leads to this node.
    #[error("nothing leads to the node `{0}`")]
    Unreachable(&'static str),
}
