// The pane next to the channel: a thread, and in its second tab the trace of it.

import { h, fill, reconcile, redraw } from './dom.js';
import { icon } from './icons.js';
import { composer, focusComposer } from './composer.js';
import { messageItems, statusLine } from './messages.js';
import { traceOf } from './trace.js';
import { channel, closeThread, known, nameOf, on, showTab, statusIn, user, worksIn } from './store.js';
import * as api from './api.js';
import { toast } from './toasts.js';

// On a narrow screen the thread takes the place of the channel, so it is the main part of the page.
const narrow = window.matchMedia('(max-width: 899px)');

/** Renders into `pane`, now and on each change. */
export function startThread(pane) {
  const head = h('div', { class: 'pane-head' });
  const list = h('div', { class: 'messages' });
  const status = h('div', { class: 'thread-status' });
  const messages = h('div', { class: 'scroller', tabindex: -1, role: 'log', 'aria-label': 'Replies' }, list, status);
  const foot = h('div', { class: 'pane-foot' });
  const trace = h('div', { class: 'scroller', tabindex: -1, role: 'tabpanel', 'aria-label': 'Trace' });
  pane.append(head, messages, foot, trace);

  let drawn = null;
  let traced = false;
  let last = null;
  const place = () => {
    const open = known.thread;
    const hadFocus = pane.contains(document.activeElement);
    pane.hidden = !open;
    document.body.classList.toggle('has-thread', Boolean(open));
    if (!open) {
      if (hadFocus) focusBehind(last);
      drawn = null;
      traced = false;
      return;
    }
    last = open.ts;
    const showsTrace = known.tab === 'trace';
    pane.setAttribute('role', narrow.matches ? 'main' : 'complementary');
    redraw(head, `${known.channel}/${showsTrace}/${narrow.matches}`, () => title(showsTrace));
    messages.hidden = foot.hidden = showsTrace;
    trace.hidden = !showsTrace;
    if (showsTrace && !traced) trace.focus({ preventScroll: true }); // for the arrow keys
    traced = showsTrace;
    const now = `${known.me}/${known.channel}/${open.ts}`;
    if (drawn === now) return;
    drawn = now;
    list.replaceChildren();
    trace.replaceChildren();
    fill(foot, composer(known.channel, 'Reply…', open.ts));
    focusComposer(foot);
  };
  const content = () => {
    const open = known.thread;
    if (!open) return;
    if (known.tab === 'trace') traceOf(trace, known.channel, open);
    if (open.messages) replies(list, open);
    const works = worksIn(known.channel, open.ts);
    const words = statusIn(known.channel, open.ts) ?? (works && 'is working…');
    const stop = works && (() => api.stopSession(known.me, known.channel, open.ts).catch((error) => toast(error.message)));
    const atEnd = messages.scrollHeight - messages.scrollTop - messages.clientHeight < 160;
    fill(status, words && statusLine(words, stop));
    if (atEnd) messages.scrollTop = messages.scrollHeight;
  };
  const both = () => {
    place();
    content();
  };
  for (const topic of ['place', 'thread', 'status']) on(topic, both);
  narrow.addEventListener('change', both);
  pane.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !event.defaultPrevented) closeThread();
  });
}

// Moves the focus from a closed thread to the button that opens it, or else to the composer.
function focusBehind(ts) {
  const main = document.querySelector('main:not([hidden])');
  const opener = [...main.querySelectorAll('.message')].find((one) => one.dataset.ts === ts)?.querySelector('.replies');
  (opener ?? main.querySelector('textarea') ?? main).focus();
}

// Renders the root, a line with the number of replies, and the replies.
function replies(list, { messages }) {
  const [root, ...rest] = messages;
  if (!root) return;
  const count = rest.filter((one) => !one.ephemeral).length;
  const line = {
    key: 'count', signature: String(count),
    make: () => h('div', { class: 'reply-count' }, h('span', {}, count === 1 ? '1 reply' : `${count} replies`)),
  };
  const scroller = list.parentElement;
  const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 160;
  reconcile(list, [...messageItems([root], { inThread: true }), ...(count ? [line] : []), ...messageItems(rest, { inThread: true })]);
  if (atEnd) scroller.scrollTop = scroller.scrollHeight;
}

function title(showsTrace) {
  const here = channel();
  return h('div', { class: 'pane-title' },
    h('button', { class: 'icon-button only-narrow', 'aria-label': 'Back to the channel', onclick: closeThread }, icon('left')),
    tabs(showsTrace), h(narrow.matches ? 'h1' : 'h2', { class: 'topic' }, here?.kind === 'im' ? nameOf(user(here.with)) : `#${here?.name}`),
    h('button', { class: 'icon-button pane-close', 'aria-label': 'Close thread', onclick: closeThread }, icon('close')));
}

function tabs(showsTrace) {
  const tab = (words, name) => h('button', {
    class: 'tab', role: 'tab', 'aria-selected': String(showsTrace === (name === 'trace')), onclick: () => showTab(name),
  }, words);
  return h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views of the thread' }, tab('Thread', 'thread'), tab('Trace', 'trace'));
}
