// Emoji in text. Those that the bot uses most are drawn here, so that they look the same on every
// machine, even without an emoji font. All others use the system's font. As in Slack, short names
// (:tada:) are replaced.

import { h } from './dom.js';

const NS = 'http://www.w3.org/2000/svg';

// The shapes, on a 16 by 16 grid: [element, attributes].
const disc = (fill) => ['circle', { cx: 8, cy: 8, r: 7, fill }];
const stroke = (d, colour = '#fff', width = 2) => ['path', {
  d, fill: 'none', stroke: colour, 'stroke-width': width, 'stroke-linecap': 'round', 'stroke-linejoin': 'round',
}];
const box = (fill) => ['rect', { x: 1, y: 1, width: 14, height: 14, rx: 3.4, fill }];
const DRAWN = {
  '✅': [box('#1f9d61'), stroke('M4.6 8.3 7.1 10.8 11.6 5.6')],
  '❌': [stroke('M4 4 12 12 M12 4 4 12', '#d92d45', 2.8)],
  '⚠': [['path', { d: 'M8 1.6 15.2 14.2H.8Z', fill: '#f2b01e', stroke: '#f2b01e', 'stroke-width': 1.2, 'stroke-linejoin': 'round' }],
    stroke('M8 6V9.6 M8 12V12.1', '#3b2a00', 1.8)],
  '⏳': [stroke('M4 2H12 M4 14H12', '#8a6d3b', 1.8),
    ['path', { d: 'M5 2.5H11V4.5L8.8 8 11 11.5V13.5H5V11.5L7.2 8 5 4.5Z', fill: '#f0c36a', stroke: '#8a6d3b', 'stroke-width': 1 }]],
  '▶': [box('#3b6fe0'), ['path', { d: 'M6 4.6 11.6 8 6 11.4Z', fill: '#fff' }]],
  '⏸': [box('#3b6fe0'), stroke('M6 5V11 M10 5V11')],
  '⏹': [box('#3b6fe0'), ['rect', { x: 5.2, y: 5.2, width: 5.6, height: 5.6, rx: 0.8, fill: '#fff' }]],
  '🟢': [disc('#27a567')],
  '🟡': [disc('#efb721')],
  '🔴': [disc('#dc3545')],
  '🔵': [disc('#3b6fe0')],
  '⚪': [disc('#b9bfc9')],
  '👀': [['ellipse', { cx: 4.6, cy: 8, rx: 3.4, ry: 5, fill: '#fff', stroke: '#7d8590', 'stroke-width': 1 }], ['circle', { cx: 5.4, cy: 9, r: 1.8, fill: '#2b2f36' }],
    ['ellipse', { cx: 11.8, cy: 8, rx: 3.4, ry: 5, fill: '#fff', stroke: '#7d8590', 'stroke-width': 1 }], ['circle', { cx: 12.6, cy: 9, r: 1.8, fill: '#2b2f36' }]],
  '👍': [['path', { d: 'M4.6 7.2 7.4 1.8A1.5 1.5 0 0 1 9.6 3.3L9 6.2H13.2A1.3 1.3 0 0 1 14.5 7.8L13.3 13A1.4 1.4 0 0 1 12 14.2H4.6Z', fill: '#f5bf42' }], ['rect', { x: 1.2, y: 7, width: 2.6, height: 7.2, rx: 0.8, fill: '#3b6fe0' }]],
  '👎': [['path', { d: 'M4.6 8.8 7.4 14.2A1.5 1.5 0 0 0 9.6 12.7L9 9.8H13.2A1.3 1.3 0 0 0 14.5 8.2L13.3 3A1.4 1.4 0 0 0 12 1.8H4.6Z', fill: '#f5bf42' }], ['rect', { x: 1.2, y: 1.8, width: 2.6, height: 7.2, rx: 0.8, fill: '#3b6fe0' }]],
  '🎉': [['path', { d: 'M1.5 14.5 5 5.4 10.6 11Z', fill: '#f2b01e' }], stroke('M8 5.6C9 4.4 9 3.2 8.4 1.8 M10.4 8C11.6 7.4 13 7.4 14.4 8 M10 6 13 3', '#d94f70', 1.4), ['circle', { cx: 13.6, cy: 11.4, r: 1, fill: '#3b6fe0' }], ['circle', { cx: 5, cy: 2.6, r: 1, fill: '#1f9d61' }]],
  '🔒': [stroke('M5 7V5A3 3 0 0 1 11 5V7', '#9aa1ac', 1.8), ['rect', { x: 2.8, y: 6.8, width: 10.4, height: 7.8, rx: 1.6, fill: '#f2b01e' }], stroke('M8 10V11.6', '#5b4300', 1.6)],
  '❔': [disc('#7d8590'), stroke('M5.9 6.2A2.2 2.2 0 1 1 8 8.6V9.4 M8 11.8V11.9', '#fff', 1.7)],
  '⏰': [disc('#d94f70'), ['circle', { cx: 8, cy: 8, r: 5.2, fill: '#fff' }], stroke('M8 5V8.2H10.4', '#2b2f36', 1.4)],
  '🚫': [['circle', { cx: 8, cy: 8, r: 6, fill: 'none', stroke: '#d92d45', 'stroke-width': 2 }], stroke('M4 4 12 12', '#d92d45')],
};

const NAMES = {
  white_check_mark: '✅', heavy_check_mark: '✔️', x: '❌', warning: '⚠️', hourglass: '⌛', hourglass_flowing_sand: '⏳',
  eyes: '👀', tada: '🎉', wave: '👋', '+1': '👍', thumbsup: '👍', '-1': '👎', thumbsdown: '👎', rocket: '🚀', bulb: '💡',
  arrow_forward: '▶️', pause_button: '⏸️', no_entry_sign: '🚫', large_green_circle: '🟢', large_yellow_circle: '🟡',
  red_circle: '🔴', large_blue_circle: '🔵', white_circle: '⚪', memo: '📝', lock: '🔒', mag: '🔍', gear: '⚙️', test_tube: '🧪',
  bar_chart: '📊', wastebasket: '🗑️', pencil2: '✏️', clock1: '🕐', smile: '😄', slightly_smiling_face: '🙂', heart: '❤️',
};

const PATTERN = new RegExp(`:[a-z0-9_+'-]+:|(?:${Object.keys(DRAWN).join('|')})\\uFE0F?`, 'gu');

/** Returns the text as nodes, with emoji as drawings. */
export function withEmoji(text, shortNames = true) {
  const nodes = [];
  let done = 0;
  for (const match of text.matchAll(PATTERN)) {
    const found = match[0].startsWith(':') ? shortNames && NAMES[match[0].slice(1, -1)] : match[0];
    if (!found) continue;
    if (match.index > done) nodes.push(document.createTextNode(text.slice(done, match.index)));
    nodes.push(emoji(found));
    done = match.index + match[0].length;
  }
  if (done < text.length) nodes.push(document.createTextNode(text.slice(done)));
  return nodes;
}

/** Returns the emoji with that short name, or the name itself if it is unknown. */
export function namedEmoji(name) {
  return NAMES[name] ? emoji(NAMES[name]) : document.createTextNode(`:${name}:`);
}

function emoji(character) {
  const shapes = DRAWN[character.replace('\uFE0F', '')];
  if (!shapes) return h('span', { class: 'emoji' }, character);
  const svg = document.createElementNS(NS, 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('aria-hidden', 'true');
  for (const [kind, attributes] of shapes) {
    const shape = document.createElementNS(NS, kind);
    for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
    svg.append(shape);
  }
  // The character is kept next to the drawing, for screen readers and for copying.
  return h('span', { class: 'emoji emoji-drawn' }, svg, h('span', { class: 'emoji-text' }, character));
}
