// Renders Block Kit, with a function for each kind of block. An unknown kind is a small grey box.

import { h, freshId } from './dom.js';
import { icon } from './icons.js';
import { withEmoji } from './emoji.js';
import { markdown } from './markdown.js';
import { richText } from './rich_text.js';
import { element, picture, unsupported } from './elements.js';
import { textObject, wordsOf } from './text.js';

/**
 * Returns the blocks as nodes. `context`: `{ values: Map, errors?: { block_id: words }, act(block_id, element, chosen) }`.
 */
export function blocks(list, context) {
  return list.map((block, index) => {
    const id = block.block_id ?? `block-${index}`;
    const node = draw(block, id, context);
    node.dataset.blockId = id;
    return node;
  });
}

// An invalid block is not shown, but the rest of the message is.
function draw(block, id, context) {
  try {
    return BLOCKS[block.type]?.(block, id, context) ?? unsupported(block.type ?? 'block');
  } catch (error) {
    console.warn('A block cannot be drawn', block, error);
    return unsupported(block.type);
  }
}

const BLOCKS = {
  section(block, id, context) {
    return h('div', { class: 'block block-section' },
      h('div', { class: 'section-main' },
        block.text && h('div', { class: 'mrkdwn' }, textObject(block.text)),
        block.fields && h('div', { class: 'section-fields' }, block.fields.map((field) => h('div', { class: 'mrkdwn' }, textObject(field))))),
      block.accessory && h('div', { class: 'section-accessory' }, element(block.accessory, id, context)));
  },

  header: (block) => h('div', { class: 'block block-header', role: 'heading', 'aria-level': 2 }, textObject(block.text)),
  divider: () => h('hr', { class: 'block block-divider' }),

  context(block) {
    return h('div', { class: 'block block-context' }, block.elements.map((one) => (
      one.type === 'image' ? picture(one, 'context-image') : h('span', { class: 'mrkdwn' }, textObject(one))
    )));
  },

  actions: (block, id, context) => h('div', { class: 'block block-actions' }, block.elements.map((one) => element(one, id, context))),
  context_actions: (block, id, context) => h('div', { class: 'block block-actions context-actions' }, block.elements.map((one) => element(one, id, context))),

  input(block, id, context) {
    const field = freshId('field');
    const help = freshId('help');
    const wrong = context.errors?.[id];
    const control = element(block.element, id, context, { live: Boolean(block.dispatch_action), id: field, describedBy: help, optional: Boolean(block.optional) });
    if (wrong) control.setAttribute('aria-invalid', 'true');
    return h('div', { class: wrong ? 'block block-input wrong' : 'block block-input' },
      h('label', { class: 'input-label', for: field }, withEmoji(wordsOf(block.label)), block.optional && h('span', { class: 'optional' }, ' (optional)')),
      control,
      h('div', { class: 'input-help', id: help },
        wrong && h('div', { class: 'input-error', role: 'alert' }, icon('alert', 15), wrong),
        block.hint && h('div', { class: 'input-hint' }, wordsOf(block.hint))));
  },

  image: (block) => h('figure', { class: 'block block-image' },
    block.title && h('figcaption', {}, textObject(block.title)), picture(block, 'image')),

  markdown: (block) => h('div', { class: 'block block-markdown' }, markdown(block.text ?? '')),
  rich_text: (block) => h('div', { class: 'block block-rich' }, richText(block)),

  table(block) {
    const cell = (one, index, tag) => {
      const settings = block.column_settings?.[index] ?? {};
      return h(tag, { class: `align-${settings.align ?? 'left'}${settings.is_wrapped ? '' : ' nowrap'}` },
        one?.type === 'rich_text' ? richText(one) : withEmoji(String(one?.text ?? '')));
    };
    const [head, ...rows] = block.rows ?? [];
    return h('div', { class: 'block table-scroll', tabindex: 0, role: 'region', 'aria-label': 'Table' }, h('table', { class: 'table' },
      head && h('thead', {}, h('tr', {}, head.map((one, index) => cell(one, index, 'th')))),
      h('tbody', {}, rows.map((row) => h('tr', {}, row.map((one, index) => cell(one, index, 'td')))))));
  },

  plan: (block) => h('div', { class: 'block block-plan' },
    h('div', { class: 'plan-title' }, words(block.title)), (block.tasks ?? []).map(task)),
  task_card: (block) => h('div', { class: 'block block-plan' }, task(block)),

  file(block) {
    return h('div', { class: 'block file-card' }, icon('file', 22), h('span', { class: 'file-name' }, block.title ?? block.external_id ?? 'File'));
  },
};

// Titles of plans and tasks are strings; older ones are text objects.
const words = (text) => (typeof text === 'string' ? withEmoji(text) : textObject(text));

const TASK_WORDS = { pending: 'waiting', in_progress: 'in progress', complete: 'done', error: 'failed' };

function task(one) {
  const status = TASK_WORDS[one.status] ? one.status : 'pending';
  const inside = [one.details, one.output].filter(Boolean).map((part) => h('div', { class: 'task-part' }, richText(part)));
  const title = [h('span', { class: 'task-mark', role: 'img', 'aria-label': TASK_WORDS[status] },
    status === 'complete' && icon('check', 13), status === 'error' && icon('close', 13)), h('span', {}, words(one.title))];
  return inside.length
    ? h('details', { class: `task task-${status}` }, h('summary', {}, title), inside)
    : h('div', { class: `task task-${status}` }, title);
}
