//! The initial workspace: a small research team with the bot installed.

use std::collections::BTreeMap;

use countersign_core::ids::UserId;

use super::{App, Channel, Guest, SLACKBOT, User, UserGroup, World};

impl World {
    /// Creates a workspace with three people, two channels, a direct message with each person, a
    /// user group and the bot.
    pub fn seed() -> Self {
        let people = [("U1", "ana", "Ana", "#2e7d6b"), ("U2", "bo", "Bo", "#8a4fbf"), ("U3", "cy", "Cy", "#c4622d")];
        let bot = UserId::from("U_BOT");
        let mut users: Vec<User> =
            people.iter().map(|(id, name, real_name, color)| user(id, name, real_name, color, false)).collect();
        let everybody: Vec<UserId> = users.iter().map(|user| user.id.clone()).chain([bot.clone()]).collect();
        let mut channels = vec![
            channel("C1", "experiments", "Ask @countersign to look things up or change them", everybody.clone()),
            channel("C2", "general", "Everything else", everybody),
        ];
        for (index, person) in users.iter().enumerate() {
            channels.push(Channel {
                with: Some(person.id.clone()),
                ..channel(&format!("D{}", index + 1), &person.name, "", vec![person.id.clone(), bot.clone()])
            });
        }
        let groups = vec![UserGroup {
            id: "S1".to_owned(),
            handle: "approvers".to_owned(),
            members: vec!["U2".into(), "U3".into()],
        }];
        users.push(user(bot.as_str(), "countersign", "Countersign", "#1f3a5f", true));
        users.push(user(SLACKBOT, "slackbot", "Slackbot", "#616061", true));
        Self {
            team: "T1".into(),
            team_name: "Learning Lab".to_owned(),
            app: App { id: "A1".to_owned(), bot_id: "B1".to_owned(), user: bot },
            users,
            channels,
            groups,
            messages: BTreeMap::new(),
            views: BTreeMap::new(),
            stacks: BTreeMap::new(),
            homes: BTreeMap::new(),
            files: BTreeMap::new(),
            statuses: BTreeMap::new(),
            sessions: BTreeMap::new(),
            prompts: BTreeMap::new(),
            read: BTreeMap::new(),
            triggers: BTreeMap::new(),
            response_urls: BTreeMap::new(),
            url: String::new(),
            last_ts_micros: 0,
            last_id: 0,
            threads: BTreeMap::new(),
        }
    }
}

fn user(id: &str, name: &str, real_name: &str, color: &str, is_bot: bool) -> User {
    User {
        id: id.into(),
        name: name.to_owned(),
        real_name: real_name.to_owned(),
        color: color.to_owned(),
        is_bot,
        deleted: false,
        tz: "UTC".to_owned(),
        home_team: None,
        guest: Guest::No,
    }
}

fn channel(id: &str, name: &str, topic: &str, members: Vec<UserId>) -> Channel {
    Channel {
        id: id.into(),
        name: name.to_owned(),
        topic: topic.to_owned(),
        with: None,
        members,
        archived: false,
        private: false,
    }
}
