// `rich_text` blocks: text that is divided into sections, lists, quotes and styled pieces.

import { h } from './dom.js';
import { namedEmoji, withEmoji } from './emoji.js';
import { channelLink, link, mention } from './mrkdwn.js';
import { slackDate, full } from './time.js';

/** Returns the parts of the block as nodes. */
export function richText(block) {
  const nodes = [];
  for (const part of block.elements ?? []) {
    if (part.type === 'rich_text_list') lists(nodes, part);
    else nodes.push(paragraph(part));
  }
  return nodes;
}

function paragraph(part) {
  const inside = (part.elements ?? []).map(piece);
  switch (part.type) {
    case 'rich_text_preformatted': return h('pre', { class: 'code-block' }, h('code', {}, inside));
    case 'rich_text_quote': return h('blockquote', {}, inside);
    default: return h('div', { class: 'rich-section' }, inside);
  }
}

function lists(nodes, part) {
  const tag = part.style === 'ordered' ? 'ol' : 'ul';
  nodes.push(h(tag, { class: `rich-list indent-${Math.min(part.indent ?? 0, 8)}`, start: tag === 'ol' && part.offset ? part.offset + 1 : null },
    (part.elements ?? []).map((item) => h('li', {}, (item.elements ?? []).map(piece)))));
}

function piece(element) {
  return styled(bare(element), element.style ?? {});
}

function bare(element) {
  switch (element.type) {
    case 'text': return withEmoji(element.text, false);
    case 'link': return link(element.url, element.text ?? null) ?? element.url;
    case 'user': return mention(element.user_id);
    case 'channel': return channelLink(element.channel_id);
    case 'usergroup': return h('span', { class: 'mention' }, `@${element.usergroup_id}`);
    case 'broadcast': return h('span', { class: 'mention mention-all' }, `@${element.range}`);
    case 'emoji': return namedEmoji(element.name);
    case 'date': return h('time', { class: 'date', title: full(new Date(element.timestamp * 1000)) },
      slackDate(element.timestamp, element.format ?? '{date_short_pretty} {time}') ?? element.fallback);
    case 'color': return h('code', { class: 'code' }, element.value);
    default: return element.text ?? '';
  }
}

function styled(nodes, style) {
  const wraps = [['code', 'code'], ['strike', 's'], ['italic', 'em'], ['bold', 'strong'], ['underline', 'u']];
  return wraps.reduce((inside, [name, tag]) => (style[name] ? h(tag, tag === 'code' ? { class: 'code' } : {}, inside) : inside), nodes);
}
