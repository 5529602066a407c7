// The sidebar: channels, people, the app. Unread ones are bold; a badge counts mentions of the
// current person.

import { h, redraw } from './dom.js';
import { icon } from './icons.js';
import { avatar } from './avatar.js';
import { bot, botChannel, go, known, nameOf, on, openChannel, user } from './store.js';

/** Renders into `nav`, now and on each change. */
export function startSidebar(nav) {
  const draw = () => {
    redraw(nav, JSON.stringify([known.team, known.channels, known.channel, known.inbox, known.mail?.available, [...known.users.values()]]), parts);
  };
  const parts = () => {
    const channels = known.channels.filter((one) => one.kind === 'channel');
    const direct = known.channels.filter((one) => one.kind === 'im' && one.id !== botChannel()?.id);
    const home = botChannel();
    return [
      h('div', { class: 'team' }, h('span', { class: 'team-name' }, known.team.name || 'Workspace'), h('span', { class: 'team-kind' }, 'sandbox')),
      h('div', { class: 'sections' },
        section('Channels', channels.map((one) => entry(one, icon('hash', 17), one.name))),
        direct.length > 0 && section('Direct messages', direct.map((one) => entry(one, avatar(user(one.with), 20), nameOf(user(one.with))))),
        known.mail?.available && section('Customers', [inboxEntry()]),
        home && section('Apps', [entry(home, avatar(bot(), 20), nameOf(bot()), () => go({ channel: home.id, home: true }))])),
      h('p', { class: 'sidebar-note' }, 'Everything here is made up and stays on this machine. ', h('strong', {}, 'Break things.')),
    ];
  };
  for (const topic of ['workspace', 'place']) on(topic, draw);
}

function inboxEntry() {
  return h('button', {
    class: 'entry', id: 'open-inbox', 'aria-current': known.inbox ? 'page' : null, onclick: () => {
      document.body.classList.remove('has-sidebar');
      go({ channel: known.channel, inbox: true });
    },
  }, icon('mail', 17), h('span', { class: 'entry-name' }, 'Inbox'));
}

const folded = new Set();

function section(words, entries) {
  const remember = (event) => (event.target.open ? folded.delete(words) : folded.add(words));
  return h('details', { class: 'section', open: !folded.has(words), ontoggle: remember }, h('summary', {}, icon('chevron', 15), words), h('ul', {}, entries.map((one) => h('li', {}, one))));
}

function entry(one, face, words, open = () => openChannel(one.id)) {
  const here = one.id === known.channel && !known.inbox;
  const news = one.unread > 0 || one.mentions > 0;
  const count = one.kind === 'im' ? one.unread : one.mentions;
  return h('button', {
    class: `entry${news ? ' unread' : ''}`, 'aria-current': here ? 'page' : null, onclick: () => {
      document.body.classList.remove('has-sidebar');
      open();
    },
  }, face, h('span', { class: 'entry-name' }, words), count > 0 && h('span', { class: 'count', 'aria-label': `${count} new` }, count));
}
