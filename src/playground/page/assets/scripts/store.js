// The state of the page, and the listeners to its changes. Events from the server are hints to
// fetch the visible data again. The location (person, channel, thread, tab) is stored in the
// address after `#`, so that it survives a reload, and two browser tabs can be two people.

import * as api from './api.js';

/** The state. It may be read anywhere, and is changed only through the functions below. */
export const known = {
  me: null, team: { name: '' }, users: new Map(), channels: [], commands: [], shortcuts: [], suggestions: [],
  channel: null, messages: null, thread: null, tab: 'thread', home: null, homeTab: false, mail: null, inbox: false, mailInView: null, statuses: new Map(), sessions: new Map(), online: true,
};

// The default person: the first of the workspace.
const NEWCOMER = 'U1';

const listeners = new Map();

/** Calls `f` whenever `topic` changes: workspace, messages, thread, home, inbox, place, status, view, error. */
export function on(topic, f) {
  listeners.set(topic, [...(listeners.get(topic) ?? []), f]);
}

/** Calls the listeners of a topic. */
export function emit(topic, detail) {
  for (const f of listeners.get(topic) ?? []) f(detail);
}

export const me = () => known.users.get(known.me);
export const user = (id) => known.users.get(id);
/** Returns the app with which the person can have a conversation. */
export const bot = () => user(known.channels.find((one) => one.kind === 'im' && user(one.with)?.is_bot)?.with);
export const people = () => [...known.users.values()].filter((someone) => !someone.is_bot);
export const channel = (id = known.channel) => known.channels.find((one) => one.id === id);
export const botChannel = () => known.channels.find((one) => one.kind === 'im' && one.with === bot()?.id);
export const nameOf = (someone) => someone?.real_name || someone?.name || 'Someone';
export const statusIn = (id, ts) => known.statuses.get(`${id}/${ts}`);
/** Returns true if the bot works in a thread as an agent. Slack then shows its own Stop button. */
export const worksIn = (id, ts) => known.sessions.get(`${id}/${ts}`) === 'processing';

/** Starts: determines the person and the location, and follows the changes of the workspace. */
export async function start() {
  const place = fromAddress();
  const last = place.as ?? localStorage.getItem('as') ?? NEWCOMER;
  [known.suggestions, known.mail] = await Promise.all([api.suggestions(), api.inbox()]);
  // The workspace may have been recreated without that person.
  await becomes(last, place).catch((error) => (error.status === 404 ? becomes(NEWCOMER) : Promise.reject(error)));
  window.addEventListener('hashchange', () => {
    const wanted = fromAddress();
    if (wanted.as && wanted.as !== known.me) becomes(wanted.as, wanted).catch(failed);
    else go(wanted, false);
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden) markRead(); });
}

let stopListening = () => {};

/** Switches to another person. */
export async function becomes(as, place = {}) {
  const withBot = known.channel && known.channel === botChannel()?.id;
  const state = await api.state(as);
  stopListening();
  take(state);
  // Each person has a separate conversation with the bot.
  if (withBot) known.channel = botChannel()?.id;
  localStorage.setItem('as', known.me);
  known.statuses.clear();
  known.sessions.clear();
  known.home = null;
  known.messages = null;
  stopListening = api.listen(known.me, onEvent, () => { online(true); refresh(); }, () => online(false));
  go({ channel: known.channel, ts: withBot ? null : known.thread?.ts, tab: known.tab, home: known.homeTab, inbox: known.inbox, ...place });
}

/** Goes to a channel, a thread (`ts`, or null for none), a tab (thread or trace), the Home of the bot, the inbox, or a mail in it. */
export function go(place, remember = true) {
  const wanted = (channel(place.channel) ?? channel() ?? known.channels[0])?.id;
  const moved = wanted !== known.channel;
  known.channel = wanted;
  known.inbox = Boolean(place.inbox && known.mail?.available);
  known.mailInView = known.inbox && place.mail ? { id: place.mail } : null;
  known.homeTab = Boolean(place.home) && wanted === botChannel()?.id && !known.inbox;
  known.tab = place.tab === 'trace' ? 'trace' : 'thread';
  if (moved) known.messages = null;
  const ts = place.ts ?? null;
  if (!ts) known.thread = null;
  else if (moved || known.thread?.ts !== ts) known.thread = { ts, messages: null };
  toAddress(remember);
  emit('place');
  if (known.homeTab) api.openHome(known.me).catch(failed);
  refresh();
}

export const openChannel = (id) => go({ channel: id, home: false });
export const openThread = (ts, tab = 'thread') => go({ channel: known.channel, ts, tab, inbox: known.inbox });
export const closeThread = () => go({ channel: known.channel, inbox: known.inbox });
export const showTab = (tab) => go({ channel: known.channel, ts: known.thread?.ts, tab, inbox: known.inbox });

/** Returns true if a message outside a thread is for the bot: it is mentioned, or this is the conversation with it. */
export const isForBot = (text) => text.includes(`@${bot()?.name}`) || known.channel === botChannel()?.id;

/** Posts as the current person. A message to the bot opens its thread next to the channel, where the bot answers. */
export async function send(text, thread_ts) {
  const sent = await api.send(known.me, known.channel, text, thread_ts);
  if (sent?.ok === false) throw new api.ApiError(sent.error ?? 'The message was not accepted.');
  const wide = window.matchMedia('(min-width: 900px)').matches;
  if (sent?.ts && !thread_ts && wide && isForBot(text) && !known.inbox) openThread(sent.ts);
  await refresh();
}

/** Fetches the visible data again. Successive calls are merged into one. */
let running = null;
let again = false;
export function refresh() {
  if (running) {
    again = true;
    return running;
  }
  running = fetchAll().catch(failed).finally(() => {
    running = null;
    if (again) {
      again = false;
      refresh();
    }
  });
  return running;
}

async function fetchAll() {
  const { me: as, channel: id, thread } = known;
  const [state, root, replies, home, mail] = await Promise.all([
    api.state(as), api.messages(as, id), thread && api.thread(as, id, thread.ts),
    known.homeTab ? api.home(as) : { view: known.home }, known.inbox ? api.inbox() : known.mail,
  ]);
  if (as !== known.me) return;
  take(state);
  if (id === known.channel) {
    known.messages = root.messages;
    known.home = home?.view ?? null;
    if (thread && thread === known.thread) thread.messages = replies.messages;
    emit('messages');
    emit('thread');
    emit('home');
  }
  known.mail = mail;
  emit('inbox');
  markRead();
}

/** Fetches the mails of the customers again. */
export async function refreshInbox() {
  try {
    known.mail = await api.inbox();
    emit('inbox');
  } catch (error) {
    failed(error);
  }
}

function take(state) {
  known.me = typeof state.me === 'object' ? state.me.id : state.me;
  known.team = state.team;
  known.users = new Map(state.users.map((someone) => [someone.id, someone]));
  known.channels = state.channels;
  known.commands = state.commands ?? [];
  known.shortcuts = state.shortcuts ?? [];
  emit('workspace');
}

function markRead() {
  const here = channel();
  if (!here || known.inbox || document.hidden || !(here.unread || here.mentions)) return;
  here.unread = 0;
  here.mentions = 0;
  emit('workspace');
  api.read(known.me, here.id).catch(failed);
}

function onEvent(event) {
  switch (event.type) {
    case 'status': {
      const key = `${event.channel}/${event.thread_ts}`;
      if (event.text) known.statuses.set(key, event.text);
      else known.statuses.delete(key);
      emit('status');
      break;
    }
    case 'session':
      known.sessions.set(`${event.channel}/${event.thread_ts}`, event.status);
      emit('status');
      break;
    case 'view_open': case 'view_push': case 'view_update': case 'view_close':
      emit('view', event);
      break;
    case 'message': {
      // The bot has posted its message, so the status is over.
      const said = event.message ?? {};
      if (user(said.user)?.is_bot && known.statuses.delete(`${event.channel}/${said.thread_ts}`)) emit('status');
      refresh();
      break;
    }
    default:
      refresh();
  }
}

function online(is) {
  if (known.online === is) return;
  known.online = is;
  emit('online');
}

function failed(error) {
  emit('error', error);
}

function fromAddress() {
  // The address of a mail is as in Gmail: the cards link to it.
  const mail = /^#all\/(.+)$/.exec(location.hash)?.[1];
  if (mail) return { channel: known.channel, ts: known.thread?.ts, tab: known.tab, inbox: '1', mail: decodeURIComponent(mail) };
  const parameters = new URLSearchParams(location.hash.slice(1));
  const get = (name) => parameters.get(name) || undefined;
  return { as: get('as'), channel: get('channel'), ts: get('thread'), tab: get('tab'), home: get('home'), inbox: get('inbox'), mail: get('mail') };
}

function toAddress(remember) {
  const parameters = new URLSearchParams({ as: known.me, channel: known.channel });
  if (known.homeTab) parameters.set('home', '1');
  if (known.inbox) parameters.set('inbox', '1');
  if (known.mailInView) parameters.set('mail', known.mailInView.id);
  if (known.thread) parameters.set('thread', known.thread.ts);
  if (known.thread && known.tab === 'trace') parameters.set('tab', 'trace');
  const address = `#${parameters}`;
  if (address === location.hash) return;
  if (remember) history.pushState(null, '', address);
  else history.replaceState(null, '', address);
}
