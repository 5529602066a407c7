//! Changes to modals and Home tabs: opening, pushing, updating, closing and publishing.

use countersign_core::ids::UserId;
use serde_json::{Value, json};

use super::{
    broadcast::Change,
    server::Server,
    timeline::assign_ids,
    values::filled_in,
    world::{World, view::View},
};

/// The maximum number of stacked modals.
pub(super) const MAX_MODALS: usize = 3;

impl Server {
    /// Closes all of a person's modals and opens a new one.
    pub(super) fn open_view(&self, user: &UserId, content: Value) -> Value {
        let mut world = self.world();
        for closed in world.stacks.remove(user).unwrap_or_default() {
            if let Some(view) = world.views.get_mut(&closed) {
                view.open = false;
            }
            self.announce(Change::ViewClose { user: user.clone(), view_id: closed });
        }
        let view = self.add_view(&mut world, user, content);
        self.announce(Change::ViewOpen { user: user.clone(), view: view.clone() });
        view
    }

    /// Pushes a modal onto a person's stack. Returns `None` if the stack is empty or full.
    pub(super) fn push_view(&self, user: &UserId, content: Value) -> Option<Value> {
        let mut world = self.world();
        let depth = world.stacks.get(user).map_or(0, Vec::len);
        if depth == 0 || depth >= MAX_MODALS {
            return None;
        }
        let view = self.add_view(&mut world, user, content);
        self.announce(Change::ViewPush { user: user.clone(), view: view.clone() });
        Some(view)
    }

    /// Updates an open modal. Fields that still exist keep their values. Returns `None` if the modal is not open.
    pub(super) fn update_view(&self, view_id: &str, content: Value) -> Option<Value> {
        let mut world = self.world();
        let content = with_ids(content, &mut world);
        let hash = self.hash(&mut world);
        let view = world.views.get_mut(view_id).filter(|view| view.open)?;
        view.values = filled_in(content["blocks"].as_array().map_or(&[], Vec::as_slice), &Value::Null, &view.values);
        view.content = content;
        view.hash = hash;
        let view = view.clone();
        let shown = view.wire(&world);
        self.announce(Change::ViewUpdate { user: view.user, view: shown.clone() });
        Some(shown)
    }

    /// Closes one of a person's modals and all modals above it. If `lowest` is `None`, closes all of them.
    pub(super) fn close_views(&self, user: &UserId, lowest: Option<&str>) {
        let mut world = self.world();
        let Some(stack) = world.stacks.get_mut(user) else { return };
        let keep = match lowest {
            Some(id) => stack.iter().position(|open| open == id).unwrap_or(stack.len()),
            None => 0,
        };
        let closed = stack.split_off(keep);
        for view_id in closed.into_iter().rev() {
            if let Some(view) = world.views.get_mut(&view_id) {
                view.open = false;
            }
            self.announce(Change::ViewClose { user: user.clone(), view_id });
        }
    }

    /// Publishes a Home tab for a person.
    pub(super) fn publish_home(&self, user: &UserId, content: Value) -> Value {
        let mut world = self.world();
        let content = with_ids(content, &mut world);
        let hash = self.hash(&mut world);
        let id = match world.homes.get(user) {
            Some(view) => view.id.clone(),
            None => world.next_id("V"),
        };
        let values = filled_in(content["blocks"].as_array().map_or(&[], Vec::as_slice), &Value::Null, &Value::Null);
        let view =
            View { id: id.clone(), user: user.clone(), hash, root: id, below: None, content, values, open: true };
        let change = Change::home(&view, &world);
        let shown = view.wire(&world);
        world.homes.insert(user.clone(), view);
        self.announce(change);
        shown
    }

    fn add_view(&self, world: &mut World, user: &UserId, content: Value) -> Value {
        let content = with_ids(content, world);
        let id = world.next_id("V");
        let hash = self.hash(world);
        let stack = world.stacks.entry(user.clone()).or_default();
        let below = stack.last().cloned();
        let root = stack.first().unwrap_or(&id).clone();
        stack.push(id.clone());
        let values = filled_in(content["blocks"].as_array().map_or(&[], Vec::as_slice), &Value::Null, &Value::Null);
        let view = View { id: id.clone(), user: user.clone(), hash, root, below, content, values, open: true };
        let shown = view.wire(world);
        world.views.insert(id, view);
        shown
    }

    fn hash(&self, world: &mut World) -> String {
        format!("{}.{}", self.now().seconds(), world.next_id("h"))
    }
}

fn with_ids(mut content: Value, world: &mut World) -> Value {
    let blocks = content["blocks"].take();
    let blocks = blocks.as_array().cloned().unwrap_or_default();
    content["blocks"] = json!(assign_ids(blocks, world));
    content
}
