//! The table of Web API methods.

use std::sync::Arc;

use super::{
    Answer, Refusal, apps, args::Args, assistant, chat, conversations, files, stream, usergroups, users, views,
};
use crate::slack::server::Server;

/// Calls a method.
pub(super) fn call(server: &Arc<Server>, method: &str, args: &Args) -> Answer {
    match method {
        "auth.test" => apps::auth_test(server),
        "bots.info" => apps::bots_info(server, args),
        "apps.connections.open" => apps::connections_open(server),
        "agents.sessions.setStatus" => assistant::set_session_status(server, args),
        "assistant.threads.setStatus" => assistant::set_status(server, args),
        "assistant.threads.setSuggestedPrompts" => assistant::set_suggested_prompts(server, args),
        "chat.postMessage" => chat::post_message(server, args),
        "chat.update" => chat::update(server, args),
        "chat.startStream" => stream::start(server, args),
        "chat.appendStream" => stream::append(server, args),
        "chat.stopStream" => stream::stop(server, args),
        "chat.delete" => chat::delete(server, args),
        "chat.postEphemeral" => chat::post_ephemeral(server, args),
        "chat.getPermalink" => chat::get_permalink(server, args),
        "conversations.replies" => conversations::replies(server, args),
        "conversations.history" => conversations::history(server, args),
        "conversations.open" => conversations::open(server, args),
        "conversations.members" => conversations::members(server, args),
        "files.info" => files::info(server, args),
        "files.getUploadURLExternal" => files::get_upload_url(server, args),
        "files.completeUploadExternal" => files::complete_upload(server, args),
        "usergroups.list" => usergroups::list(server, args),
        "usergroups.users.list" => usergroups::users_list(server, args),
        "users.info" => users::info(server, args),
        "users.list" => users::list(server, args),
        "views.open" => views::open(server, args),
        "views.push" => views::push(server, args),
        "views.update" => views::update(server, args),
        "views.publish" => views::publish(server, args),
        _ => Err(Refusal::of("unknown_method")),
    }
}
