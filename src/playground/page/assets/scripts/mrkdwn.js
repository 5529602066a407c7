// Slack's mrkdwn, rendered as in Slack: *bold* _italic_ ~strike~ `code`, fences, > quotes,
// <links|…>, mentions and dates. Markdown is not mrkdwn: as in Slack, **bold**, # headings, lists
// and [links](…) are shown as typed.

import { h } from './dom.js';
import { withEmoji } from './emoji.js';
import { slackDate, full } from './time.js';
import { known, user } from './store.js';

/** The only three characters that Slack escapes. */
export const unescape = (text) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

/**
 * Returns the text as nodes. As in Slack, bare addresses become links, except in a `verbatim` text object.
 */
export function mrkdwn(text, linking = true) {
  return text.split(/```\n?([\s\S]*?)\n?```/g).flatMap((piece, index) => {
    if (index % 2) return [h('pre', { class: 'code-block' }, h('code', {}, plainTokens(piece)))];
    return paragraphs(piece, index > 0, linking);
  });
}

/** Returns the text without formatting marks, for notifications, labels and copying. */
export function plainText(text) {
  return plainTokens(text).replace(/(^|\W)[*_~]([^*_~\n]+)[*_~](?=\W|$)/g, '$1$2');
}

// Lines that begin with > are quoted. Adjacent ones form one quote.
function paragraphs(text, afterFence, linking) {
  const groups = [];
  for (const line of (afterFence ? text.replace(/^\n/, '') : text).split('\n')) {
    const quoted = /^(?:>|&gt;) ?(.*)$/.exec(line);
    const last = groups.at(-1);
    const content = quoted ? quoted[1] : line;
    if (last && last.quoted === Boolean(quoted)) last.lines.push(content);
    else groups.push({ quoted: Boolean(quoted), lines: [content] });
  }
  return groups.flatMap(({ quoted, lines }) => {
    const nodes = inline(lines.join('\n'), linking);
    return quoted ? [h('blockquote', {}, nodes)] : nodes;
  });
}

const MARKS = { '*': 'strong', _: 'em', '~': 's' };
const isWord = (character) => character !== undefined && /[\p{L}\p{N}]/u.test(character);

function inline(text, linking) {
  const nodes = [];
  let plain = '';
  const flush = () => {
    if (plain) nodes.push(...(linking ? words(plain) : withEmoji(unescape(plain))));
    plain = '';
  };
  for (let at = 0; at < text.length;) {
    const [node, end] = special(text, at, linking) ?? [];
    if (node) {
      flush();
      nodes.push(node);
      at = end;
    } else {
      plain += text[at];
      at += 1;
    }
  }
  flush();
  return nodes;
}

// Returns the node that begins at `at`, and its end; nothing if there is just a character.
function special(text, at, linking) {
  const character = text[at];
  if (character === '<') {
    const end = text.indexOf('>', at);
    const node = end > at + 1 && token(text.slice(at + 1, end));
    return node ? [node, end + 1] : null;
  }
  if (character === '`') {
    const end = text.indexOf('`', at + 1);
    if (end <= at + 1 || text.slice(at, end).includes('\n')) return null;
    return [h('code', { class: 'code' }, plainTokens(text.slice(at + 1, end))), end + 1];
  }
  if (!MARKS[character] || isWord(text[at - 1]) || text[at - 1] === character) return null;
  const end = closing(text, at, character);
  return end ? [h(MARKS[character], {}, inline(text.slice(at + 1, end), linking)), end + 1] : null;
}

// A closing mark is on the same line, after a character other than a space, and not before a
// letter.
function closing(text, at, mark) {
  if (!text[at + 1] || /\s/.test(text[at + 1]) || text[at + 1] === mark) return null;
  for (let end = at + 1; end < text.length && text[end] !== '\n'; end += 1) {
    if (text[end] === '<') end = Math.max(end, text.indexOf('>', end));
    else if (text[end] === mark && !/\s/.test(text[end - 1]) && !isWord(text[end + 1]) && text[end + 1] !== mark) return end;
  }
  return null;
}

// Returns the node for the text between < and >.
function token(inside) {
  const bar = inside.indexOf('|');
  const target = bar < 0 ? inside : inside.slice(0, bar);
  const label = bar < 0 ? null : unescape(inside.slice(bar + 1));
  if (target.startsWith('@')) return mention(target.slice(1), label);
  if (target.startsWith('#')) return channelLink(target.slice(1), label);
  if (target.startsWith('!')) return command(target.slice(1), label);
  return link(unescape(target), label);
}

/** Returns a mention, such as `@Ana`. One of the current person is highlighted more. */
export function mention(id, label) {
  const name = user(id)?.name ?? label ?? id;
  return h('span', { class: id === known.me ? 'mention mention-me' : 'mention', title: user(id)?.real_name }, `@${name}`);
}

/** Returns a `#channel` that links to the channel. */
export function channelLink(id, label) {
  const found = known.channels.find((one) => one.id === id);
  return h('a', { class: 'mention', href: `#as=${known.me}&channel=${id}` }, `#${found?.name ?? label ?? id}`);
}

function command(inside, label) {
  const [name, seconds, format] = inside.split('^');
  if (name === 'date') {
    const shown = slackDate(Number(seconds), format ?? '') ?? label ?? '';
    return h('time', { class: 'date', title: full(new Date(Number(seconds) * 1000)) }, shown);
  }
  if (name === 'channel' || name === 'here' || name === 'everyone') return h('span', { class: 'mention mention-all' }, `@${name}`);
  return h('span', { class: 'mention' }, label ?? `@${name.replace('subteam', 'group')}`);
}

/** Returns a link. Addresses other than web and mail addresses stay text. */
export function link(url, label) {
  const message = /^https:\/\/[^/]+\.slack\.com\/archives\/(\w+)\/p(\d+)(\d{6})(?:\?.*thread_ts=([\d.]+))?/.exec(url);
  if (message) {
    const [, channel, seconds, rest, root] = message;
    return h('a', { href: `#as=${known.me}&channel=${channel}&thread=${root ?? `${seconds}.${rest}`}` }, label ?? url);
  }
  if (!/^(https?:|mailto:)/i.test(url)) return label === null ? null : h('span', { class: 'not-a-link', title: url }, label);
  // An address of this page itself, such as a mail in the inbox, opens here.
  const address = URL.canParse(url) && new URL(url);
  if (address && address.origin === location.origin && address.hash) return h('a', { href: address.hash }, label ?? url);
  return h('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, label ?? url.replace(/^mailto:/, ''));
}

// Returns the text between marks, with bare addresses as links and emoji as drawings.
function words(text) {
  return text.split(/(https?:[^\s<>]+[^\s<>.,;:!?)'"])/g).flatMap((piece, index) => (
    index % 2 ? [link(unescape(piece), null)] : withEmoji(unescape(piece))
  ));
}

function plainTokens(text) {
  return unescape(text.replace(/<([^<>\n]+)>/g, (whole, inside) => token(inside)?.textContent ?? whole));
}
