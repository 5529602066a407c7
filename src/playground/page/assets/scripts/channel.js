// The conversation in the middle: header, messages and composer; or the Home tab of the bot.

import { h, fill, reconcile, redraw } from './dom.js';
import { icon } from './icons.js';
import { avatar } from './avatar.js';
import { composer, focusComposer } from './composer.js';
import { beginning, emptyState } from './suggestions.js';
import { messageItems } from './messages.js';
import { homeView } from './home.js';
import { botChannel, channel, go, known, me, nameOf, on, user } from './store.js';
import { plainText } from './mrkdwn.js';

/** Renders into `pane`, now and on each change. */
export function startChannel(pane) {
  const head = h('div', { class: 'pane-head' });
  const list = h('div', { class: 'messages' });
  const scroller = h('div', { class: 'scroller', tabindex: -1, role: 'log', 'aria-label': 'Messages' }, list);
  const foot = h('div', { class: 'pane-foot' });
  pane.append(head, scroller, foot);

  let drawn = null;
  const place = () => {
    const here = channel();
    if (!here || known.inbox) return;
    redraw(head, JSON.stringify([here.name, here.topic, known.homeTab, here.id]), () => title(here));
    // The title of the browser tab names the person and the place, since two tabs can be two
    // people.
    const news = known.channels.reduce((sum, one) => sum + (one.kind === 'im' ? one.unread : one.mentions), 0);
    document.title = `${news ? `(${news}) ` : ''}${nameOf(me())} · ${here.kind === 'im' ? nameOf(user(here.with)) : `#${here.name}`} · Countersign`;
    const now = `${known.me}/${here.id}/${known.homeTab}`;
    if (drawn === now) return;
    drawn = now;
    list.replaceChildren();
    foot.hidden = known.homeTab;
    if (known.homeTab) return;
    fill(foot, composer(here.id, here.kind === 'im' ? `Message ${nameOf(user(here.with))}` : `Message #${here.name}`));
    focusComposer(foot);
  };
  const content = () => {
    const here = channel();
    if (!here || known.inbox) return;
    const fresh = !list.children.length;
    const atEnd = fresh || scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 120;
    if (known.homeTab) {
      const view = JSON.stringify(known.home);
      reconcile(list, [{ key: 'home', signature: view, make: () => homeView(known.home) }]);
      return;
    }
    if (!known.messages) return;
    reconcile(list, known.messages.length
      ? [{ key: 'beginning', signature: `${known.me}/${here.id}`, make: beginning }, ...messageItems(known.messages)]
      : [{ key: 'empty', signature: known.me, make: emptyState }]);
    if (atEnd) scroller.scrollTop = known.messages.length ? scroller.scrollHeight : 0;
  };
  for (const topic of ['place', 'workspace']) on(topic, place);
  for (const topic of ['messages', 'status', 'home', 'place']) on(topic, content);
}

function title(here) {
  const other = here.kind === 'im' && user(here.with);
  return h('div', { class: 'pane-title' },
    other ? avatar(other, 24) : icon('hash'), h('h1', {}, other ? nameOf(other) : here.name), other?.is_bot && h('span', { class: 'badge' }, 'App'), tabs(here),
    here.topic && h('span', { class: 'topic', title: plainText(here.topic) }, plainText(here.topic)));
}

// Only the conversation with the bot has tabs.
function tabs(here) {
  if (here.id !== botChannel()?.id) return null;
  const tab = (words, home) => h('button', {
    class: 'tab', role: 'tab', 'aria-selected': String(known.homeTab === home), onclick: () => go({ channel: here.id, home }),
  }, words);
  return h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views of the app' }, tab('Home', true), tab('Messages', false));
}
