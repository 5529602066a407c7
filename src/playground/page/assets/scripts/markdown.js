// The Markdown of a `markdown` block, as language models write it. It builds nodes and supports no
// HTML. Unknown syntax is shown as typed.

import { h } from './dom.js';
import { withEmoji } from './emoji.js';
import { link } from './mrkdwn.js';

/** Returns the text as nodes. */
export function markdown(text) {
  return blocks(text.replace(/\r\n?/g, '\n').split('\n'));
}

const ITEM = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function blocks(lines) {
  const nodes = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    const fence = /^\s*(```+|~~~+)/.exec(line);
    if (!line.trim()) at += 1;
    else if (fence) {
      const end = lines.findIndex((other, index) => index > at && other.trim().startsWith(fence[1]));
      const last = end < 0 ? lines.length : end;
      nodes.push(h('pre', { class: 'code-block' }, h('code', {}, lines.slice(at + 1, last).join('\n'))));
      at = last + 1;
    } else if (heading) {
      nodes.push(h('p', { class: `md-heading md-h${heading[1].length}`, role: 'heading', 'aria-level': heading[1].length + 2 }, inline(heading[2])));
      at += 1;
    } else if (RULE.test(line)) {
      nodes.push(h('hr'));
      at += 1;
    } else if (line.includes('|') && TABLE_RULE.test(lines[at + 1] ?? '') && lines[at + 1].includes('-')) {
      const end = endOf(lines, at + 2, (other) => other.includes('|'));
      nodes.push(table(line, lines[at + 1], lines.slice(at + 2, end)));
      at = end;
    } else if (/^\s*>/.test(line)) {
      const end = endOf(lines, at, (other) => /^\s*>/.test(other));
      nodes.push(h('blockquote', {}, blocks(lines.slice(at, end).map((other) => other.replace(/^\s*> ?/, '')))));
      at = end;
    } else if (ITEM.test(line)) {
      const end = endOf(lines, at, (other, index) => ITEM.test(other) || /^\s{2,}\S/.test(other) || (!other.trim() && ITEM.test(lines[index + 1] ?? '')));
      nodes.push(list(lines.slice(at, end)));
      at = end;
    } else {
      const begins = (other) => !other.trim() || ITEM.test(other) || /^(#{1,6}\s|\s*(```|~~~)|\s*>)/.test(other) || RULE.test(other);
      const end = endOf(lines, at + 1, (other) => !begins(other));
      nodes.push(h('p', {}, inline(lines.slice(at, end).join('\n'))));
      at = end;
    }
  }
  return nodes;
}

function endOf(lines, from, belongs) {
  let end = from;
  while (end < lines.length && belongs(lines[end], end)) end += 1;
  return end;
}

// The items with the smallest indentation. Deeper lines are blocks inside the item above them.
function list(lines) {
  const [, indent, mark] = ITEM.exec(lines[0]);
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= indent.length) items.push({ text: item[3], below: [] });
    else if (line.trim()) items.at(-1).below.push(line.slice(Math.min(line.search(/\S/), indent.length + 2)));
  }
  const ordered = /\d/.test(mark);
  const start = ordered ? Number.parseInt(mark, 10) : 1;
  return h(ordered ? 'ol' : 'ul', start > 1 ? { start } : {}, items.map(({ text, below }) => {
    const task = /^\[([ xX])\]\s+(.*)$/.exec(text);
    return h('li', task ? { class: 'md-task' } : {},
      task && h('input', { type: 'checkbox', disabled: true, checked: task[1] !== ' ' }), inline(task ? task[2] : text), blocks(below));
  }));
}

function table(head, rule, rows) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
  const align = cells(rule).map((cell) => (cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'right') : 'left'));
  const row = (line, tag) => h('tr', {}, cells(line).map((cell, index) => h(tag, { class: `align-${align[index] ?? 'left'}` }, inline(cell))));
  return h('div', { class: 'table-scroll' }, h('table', { class: 'table' },
    h('thead', {}, row(head, 'th')), h('tbody', {}, rows.map((line) => row(line, 'td')))));
}

// The inline formats, in order of precedence: each with a pattern and a function that makes its
// node.
const INLINE = [
  [/\\([\\`*_{}[\]()#+.!~|<>-])/y, (m) => document.createTextNode(m[1])],
  [/(`+)([\s\S]*?[^`])\1(?!`)/y, (m) => h('code', { class: 'code' }, m[2].trim())],
  [/!?\[([^\]]*)\]\(([^()\s]+)(?:\s+"[^"]*")?\)/y, (m) => link(m[2], m[1] || m[2])],
  [/<(https?:[^>\s]+)>/y, (m) => link(m[1], null)],
  [/https?:[^\s<>]*[^\s<>.,;:!?)'"*_]/y, (m) => link(m[0], null)],
  [/\*\*(?=\S)([\s\S]*?\S)\*\*/y, (m) => h('strong', {}, inline(m[1]))],
  [/__(?=\S)([\s\S]*?\S)__(?!\w)/y, (m, before) => (/\w/.test(before) ? null : h('strong', {}, inline(m[1])))],
  [/~~(?=\S)([\s\S]*?\S)~~/y, (m) => h('s', {}, inline(m[1]))],
  [/\*(?=\S)([^*]*[^*\s])\*/y, (m) => h('em', {}, inline(m[1]))],
  [/_(?=\S)([^_]*[^_\s])_(?!\w)/y, (m, before) => (/\w/.test(before) ? null : h('em', {}, inline(m[1])))],
];

function inline(text) {
  const nodes = [];
  let plain = '';
  for (let at = 0; at < text.length;) {
    const found = INLINE.reduce((made, [pattern, make]) => {
      if (made) return made;
      pattern.lastIndex = at;
      const match = pattern.exec(text);
      const node = match && make(match, text[at - 1] ?? '');
      return node ? { node, end: at + match[0].length } : null;
    }, null);
    if (found) {
      nodes.push(...withEmoji(plain), found.node);
      plain = '';
      at = found.end;
    } else {
      plain += text[at];
      at += 1;
    }
  }
  return [...nodes, ...withEmoji(plain)];
}
