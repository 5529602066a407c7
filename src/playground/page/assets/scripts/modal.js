// The modals of the app: a stack of up to three, with errors next to their fields, in a <dialog>,
// which keeps the focus inside and closes on Escape.

import * as api from './api.js';
import { h, fill } from './dom.js';
import { icon } from './icons.js';
import { withEmoji } from './emoji.js';
import { known, on } from './store.js';
import { blocks } from './blocks.js';
import { stateValues, valueKey } from './elements.js';
import { pressesIn } from './press.js';
import { wordsOf } from './text.js';
import { toast } from './toasts.js';

// The open views, topmost last: `{ view, values, errors }`.
let stack = [];
let dialog = null;

/** Opens, updates and closes views when the app does. */
export function startModals() {
  on('view', ({ type, view, view_id: id }) => {
    if (type === 'view_close') stack = stack.filter((one) => one.view.id !== id);
    else {
      const open = stack.find((one) => one.view.id === view.id);
      if (open) Object.assign(open, { view, errors: {} });
      else if (type !== 'view_update') stack = [...(type === 'view_push' ? stack : []), { view, values: new Map(), errors: {} }];
    }
    draw();
  });
}

function draw({ keepFocus = false } = {}) {
  const top = stack.at(-1);
  if (!top) {
    dialog?.close();
    dialog?.remove();
    dialog = null;
    return;
  }
  if (!dialog) {
    dialog = h('dialog', { class: 'dialog' });
    dialog.addEventListener('cancel', (event) => {
      event.preventDefault();
      back();
    });
    document.body.append(dialog);
    dialog.showModal();
  }
  const { view, values, errors } = top;
  dialog.setAttribute('aria-label', wordsOf(view.title));
  forgetGone(view, values);
  const context = { values, errors, act: pressesIn({ view_id: view.id }, values) };
  fill(dialog, h('form', { onsubmit: (event) => { event.preventDefault(); submit(top); }, novalidate: true },
    h('header', { class: 'dialog-head' },
      stack.length > 1 && h('button', { type: 'button', class: 'icon-button', 'aria-label': 'Back', onclick: back }, icon('left')),
      h('h2', {}, withEmoji(wordsOf(view.title))),
      h('button', { type: 'button', class: 'icon-button', 'aria-label': 'Close', onclick: closeAll }, icon('close'))),
    h('div', { class: 'dialog-body' }, blocks(view.blocks ?? [], context)),
    h('footer', { class: 'dialog-foot' },
      h('button', { type: 'button', class: 'button', onclick: back }, withEmoji(wordsOf(view.close) || (view.submit ? 'Cancel' : 'Close'))),
      view.submit && h('button', { type: 'submit', class: 'button button-primary' }, h('span', { class: 'button-words' }, withEmoji(wordsOf(view.submit)))))));
  if (!keepFocus) (dialog.querySelector('[aria-invalid="true"]') ?? dialog.querySelector('.field, .select, .choice input, .button-primary'))?.focus();
}

// An updated view keeps the values of fields that still exist, and no others.
function forgetGone(view, values) {
  const there = new Set((view.blocks ?? []).flatMap((block) => (
    [block.element, block.accessory, ...(block.elements ?? [])].filter(Boolean).map((one) => valueKey(block.block_id, one.action_id))
  )));
  for (const key of values.keys()) if (!there.has(key)) values.delete(key);
}

async function submit(top) {
  top.errors = missing(top);
  if (Object.keys(top.errors).length) {
    draw();
    return;
  }
  const button = dialog.querySelector('button[type=submit]');
  if (button.getAttribute('aria-busy')) return;
  button.setAttribute('aria-busy', 'true');
  try {
    const result = await api.submitView(known.me, top.view.id, stateValues(top.values));
    if (result.errors && Object.keys(result.errors).length) top.errors = result.errors;
    else if (result.ok === false) toast(result.error ?? 'We had some trouble connecting to the app. Try again?');
    else if (result.closed) stack = stack.filter((one) => one !== top);
    draw();
  } catch (error) {
    toast(error.message);
    button.removeAttribute('aria-busy');
  }
}

// Returns the errors that Slack shows without asking the app.
function missing({ view, values }) {
  const errors = {};
  for (const block of (view.blocks ?? []).filter((one) => one.type === 'input' && !one.optional)) {
    const { type, ...held } = values.get(valueKey(block.block_id, block.element.action_id)) ?? {};
    const empty = Object.values(held).every((value) => value === null || value === undefined || value === '' || value.length === 0);
    if (empty) errors[block.block_id] = 'Please complete this required field.';
  }
  return errors;
}

function back() {
  const top = stack.pop();
  if (top) api.closeView(known.me, top.view.id).catch((error) => toast(error.message));
  draw();
}

async function closeAll() {
  const open = stack.reverse();
  stack = [];
  draw();
  try {
    for (const { view } of open) await api.closeView(known.me, view.id);
  } catch (error) {
    toast(error.message);
  }
}
