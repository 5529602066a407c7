// The interactive elements of Block Kit. Each stores its value in `context.values`, in the format
// of Slack's `view.state.values`. Elements that act call `context.act(block_id, element, chosen)`.

import { h } from './dom.js';
import { icon } from './icons.js';
import { withEmoji } from './emoji.js';
import { confirm } from './confirm.js';
import { manyOf, oneOf, overflow } from './pickers.js';
import { textObject, wordsOf } from './text.js';

/** Renders an element. With `live`, it acts when its value changes; otherwise only its form is submitted. */
export function element(spec, blockId, context, { live = true, id = null, describedBy = null, optional = false } = {}) {
  const draw = ELEMENTS[spec.type];
  if (!draw) return unsupported(spec.type ?? 'element');
  const key = valueKey(blockId, spec.action_id);
  const field = {
    spec, context, blockId, optional,
    held: context.values.get(key),
    hold: (chosen) => context.values.set(key, { type: spec.type, ...chosen }),
    attributes: { id, 'aria-describedby': describedBy, 'aria-label': id ? null : wordsOf(spec.placeholder) || null, 'data-action-id': spec.action_id },
  };
  field.change = async (chosen, node) => {
    field.hold(chosen);
    if (live) await act(field, chosen, node);
  };
  return draw(field);
}

/** Returns the key of a field in `context.values`. */
export const valueKey = (blockId, actionId) => `${blockId}\n${actionId}`;

/** Returns the values in Slack's format, `{ block_id: { action_id: { type, … } } }`. */
export function stateValues(values) {
  const state = {};
  for (const [key, value] of values) {
    const [block, action] = key.split('\n');
    (state[block] ??= {})[action] = value;
  }
  return state;
}

/** Returns a small grey box in place of an element that is not supported here. */
export function unsupported(type) {
  return h('div', { class: 'unsupported' }, `unsupported block: ${type}`);
}

// Asks for confirmation if the element requires it, shows progress, and sends the action to the
// app.
async function act({ spec, blockId, context }, chosen, node) {
  if (spec.confirm && !(await confirm(spec.confirm))) return;
  node?.setAttribute('aria-busy', 'true');
  try {
    await context.act(blockId, spec, chosen);
  } finally {
    node?.removeAttribute('aria-busy');
  }
}

const option = (chosen) => ({ selected_option: chosen });

const ELEMENTS = {
  button(field) {
    const { spec } = field;
    const press = () => {
      if (button.getAttribute('aria-busy')) return;
      if (/^https?:/i.test(spec.url ?? '')) window.open(spec.url, '_blank', 'noopener,noreferrer');
      act(field, spec.value === undefined ? {} : { value: spec.value }, button);
    };
    const button = h('button', {
      ...field.attributes, type: 'button', class: `button ${spec.style ? `button-${spec.style}` : ''}`,
      'aria-label': spec.accessibility_label, onclick: press,
    }, h('span', { class: 'button-words' }, withEmoji(wordsOf(spec.text), spec.text?.emoji !== false)));
    return button;
  },

  overflow: ({ spec, attributes, change }) => overflow(spec, attributes, (chosen, node) => change(option(chosen), node)),

  static_select(field) {
    const initial = field.held ? field.held.selected_option : field.spec.initial_option;
    field.hold(option(initial ?? null));
    return oneOf(field.spec, initial?.value, field.attributes, (chosen, node) => field.change(option(chosen), node), field.optional);
  },

  users_select: (field) => chooser(field, 'selected_user', 'initial_user'),
  channels_select: (field) => chooser(field, 'selected_channel', 'initial_channel'),
  conversations_select: (field) => chooser(field, 'selected_conversation', 'initial_conversation'),

  multi_static_select(field) {
    const initial = field.held?.selected_options ?? field.spec.initial_options ?? [];
    field.hold({ selected_options: initial });
    return manyOf(field.spec, initial.map(({ value }) => value), field.attributes, (chosen) => field.change({ selected_options: chosen }));
  },

  multi_users_select(field) {
    const initial = field.held?.selected_users ?? field.spec.initial_users ?? [];
    field.hold({ selected_users: initial });
    return manyOf(field.spec, initial, field.attributes, (chosen) => field.change({ selected_users: chosen }));
  },

  radio_buttons(field) {
    const initial = field.held?.selected_option ?? field.spec.initial_option;
    field.hold(option(initial ?? null));
    return choices(field, 'radio', (one) => one.value === initial?.value, (one) => field.change(option(one)));
  },

  checkboxes(field) {
    const chosen = new Set((field.held?.selected_options ?? field.spec.initial_options ?? []).map(({ value }) => value));
    const all = () => ({ selected_options: field.spec.options.filter(({ value }) => chosen.has(value)) });
    field.hold(all());
    return choices(field, 'checkbox', ({ value }) => chosen.has(value), ({ value }, on) => {
      if (on) chosen.add(value);
      else chosen.delete(value);
      field.change(all());
    });
  },

  plain_text_input(field) {
    const { spec } = field;
    return typed(field, spec.multiline ? h('textarea', { rows: 8 }) : h('input', { type: 'text' }), 'value', spec.initial_value);
  },

  number_input(field) {
    const { spec } = field;
    const step = spec.is_decimal_allowed ? 'any' : '1';
    return typed(field, h('input', { type: 'number', step, min: spec.min_value, max: spec.max_value }), 'value', spec.initial_value);
  },

  email_text_input: (field) => typed(field, h('input', { type: 'email' }), 'value', field.spec.initial_value),
  url_text_input: (field) => typed(field, h('input', { type: 'url' }), 'value', field.spec.initial_value),
  datepicker: (field) => typed(field, h('input', { type: 'date' }), 'selected_date', field.spec.initial_date),
  datetimepicker(field) {
    const at = field.held?.selected_date_time ?? field.spec.initial_date_time;
    // The browser's time, without its zone, as the element wants it.
    const local = at ? new Date((at - new Date(at * 1000).getTimezoneOffset() * 60) * 1000).toISOString().slice(0, 16) : '';
    const input = h('input', { type: 'datetime-local', class: 'field' });
    input.value = local;
    const held = () => ({ selected_date_time: input.value ? Math.floor(new Date(input.value).getTime() / 1000) : null });
    for (const [key, value] of Object.entries(field.attributes)) if (value) input.setAttribute(key, value);
    field.hold(held());
    input.addEventListener('input', () => field.hold(held()));
    input.addEventListener('change', () => field.change(held(), input));
    return input;
  },
  timepicker: (field) => typed(field, h('input', { type: 'time' }), 'selected_time', field.spec.initial_time),

  image: ({ spec }) => picture(spec, 'accessory-image'),
  icon_button(field) {
    const { spec } = field;
    const button = h('button', {
      ...field.attributes, type: 'button', class: 'icon-button', 'aria-label': wordsOf(spec.text), title: wordsOf(spec.text),
      onclick: () => act(field, spec.value === undefined ? {} : { value: spec.value }, button),
    }, icon(spec.icon));
    return button;
  },

  feedback_buttons(field) {
    const { spec } = field;
    const one = (which, name) => {
      const button = h('button', {
        type: 'button', class: 'icon-button', 'aria-label': which.accessibility_label ?? wordsOf(which.text), title: wordsOf(which.text), 'aria-pressed': 'false',
        onclick: () => {
          for (const other of pair.children) other.setAttribute('aria-pressed', String(other === button));
          act(field, { value: which.value }, button);
        },
      }, icon(name));
      return button;
    };
    const pair = h('span', { class: 'feedback', ...field.attributes }, one(spec.positive_button, 'thumbsup'), one(spec.negative_button, 'thumbsdown'));
    return pair;
  },
};

// The values of these menus are the ids of people and channels.
function chooser(field, name, initialName) {
  const initial = field.held ? field.held[name] : field.spec[initialName];
  field.hold({ [name]: initial ?? null });
  return oneOf(field.spec, initial, field.attributes, (chosen, node) => field.change({ [name]: chosen }, node), field.optional);
}

function choices(field, type, isChosen, change) {
  const name = valueKey(field.blockId, field.spec.action_id);
  return h('div', { class: 'choices', role: type === 'radio' ? 'radiogroup' : 'group', ...field.attributes },
    field.spec.options.map((one) => h('label', { class: 'choice' },
      h('input', { type, name, value: one.value, checked: isChosen(one), onchange: (event) => change(one, event.target.checked) }),
      h('span', {}, textObject(one.text), one.description && h('span', { class: 'choice-description' }, textObject(one.description))))));
}

// Text inputs: the value is stored at each change. If the element is live, Enter or leaving the
// field acts.
function typed(field, input, name, initial) {
  const { spec, attributes, held } = field;
  for (const [key, value] of Object.entries({ ...attributes, placeholder: wordsOf(spec.placeholder), maxlength: spec.max_length })) {
    if (value) input.setAttribute(key, value);
  }
  input.classList.add('field');
  input.value = held?.[name] ?? initial ?? '';
  field.hold({ [name]: input.value || null });
  input.addEventListener('input', () => field.hold({ [name]: input.value || null }));
  input.addEventListener('change', () => field.change({ [name]: input.value || null }, input));
  return input;
}

/** Returns an image from this server. The address of any other is shown as text, since nothing is loaded from elsewhere. */
export function picture(spec, style) {
  const url = spec.image_url ?? spec.slack_file?.url ?? (spec.slack_file?.id && `/workspace/file/${spec.slack_file.id}`) ?? '';
  const address = new URL(url, location.href);
  if (address.origin !== location.origin) return h('span', { class: `${style} picture-elsewhere`, title: url }, icon('file', 14), spec.alt_text ?? 'image');
  return h('img', { class: style, src: address.pathname + address.search, alt: spec.alt_text ?? '' });
}
