// Menus of options: single choice, multiple choice, and overflow.

import { h, fill } from './dom.js';
import { icon } from './icons.js';
import { openMenu } from './menu.js';
import { avatar } from './avatar.js';
import { known, people, nameOf } from './store.js';
import { wordsOf } from './text.js';

/** Returns the groups of options of an element: `[{ label, options: [{ key, words, option }] }]`. */
function groups(element) {
  const plain = (option) => ({ key: option.value, words: wordsOf(option.text), description: wordsOf(option.description), option });
  if (element.type.includes('users_select')) {
    return [{ options: [...people(), ...[...known.users.values()].filter((one) => one.is_bot)].map((one) => ({ key: one.id, words: nameOf(one), option: one.id, face: one })) }];
  }
  if (element.type.includes('channels_select') || element.type.includes('conversations_select')) {
    return [{ options: known.channels.filter((one) => one.kind === 'channel').map((one) => ({ key: one.id, words: `#${one.name}`, option: one.id })) }];
  }
  if (element.option_groups) return element.option_groups.map((group) => ({ label: wordsOf(group.label), options: group.options.map(plain) }));
  return [{ options: (element.options ?? []).map(plain) }];
}

/**
 * Returns a native list. Calls `change` with the chosen option, or with the id of a person or channel, or with null if
 * an `optional` choice is cleared.
 */
export function oneOf(element, chosenKey, attributes, change, optional = false) {
  const offered = groups(element);
  const all = offered.flatMap((group) => group.options);
  const draw = ({ key, words }) => h('option', { value: key, selected: key === chosenKey }, words);
  const select = h('select', { class: 'select', ...attributes, onchange: () => change(all.find(({ key }) => key === select.value)?.option ?? null, select) },
    h('option', { value: '', disabled: !optional, hidden: !optional, selected: !chosenKey }, wordsOf(element.placeholder) || 'Select an option'),
    offered.map((group) => (group.label ? h('optgroup', { label: group.label }, group.options.map(draw)) : group.options.map(draw))));
  return select;
}

/** Returns a button that shows the chosen options and opens a list. Calls `change(options)` when the list closes. */
export function manyOf(element, chosenKeys, attributes, change) {
  const offered = groups(element);
  const all = offered.flatMap((group) => group.options);
  const chosen = new Set(chosenKeys);
  const show = () => fill(button, all.some(({ key }) => chosen.has(key))
    ? h('span', { class: 'chips' }, all.filter(({ key }) => chosen.has(key)).map(({ words }) => h('span', { class: 'chip' }, words)))
    : h('span', { class: 'placeholder' }, wordsOf(element.placeholder) || 'Select options'), icon('chevron', 16));
  const toggle = (key) => {
    if (!chosen.delete(key) && chosen.size < (element.max_selected_items ?? Infinity)) chosen.add(key);
    show();
    return chosen.has(key);
  };
  const button = h('button', {
    type: 'button', class: 'select select-many', 'aria-haspopup': 'menu', 'aria-expanded': 'false', ...attributes,
    onclick: () => openMenu(button, offered.flatMap((group) => [
      ...(group.label ? [{ heading: group.label }] : []),
      ...group.options.map(({ key, words, description, face }) => ({
        label: words, description, face: face && avatar(face, 20), checked: chosen.has(key), choose: () => toggle(key),
      })),
    ]), { stay: true, label: 'Options', closed: () => change(all.filter(({ key }) => chosen.has(key)).map(({ option }) => option)) }),
  });
  show();
  return button;
}

/** Returns an overflow menu, the three dots. */
export function overflow(element, attributes, change) {
  const button = h('button', {
    type: 'button', class: 'button button-overflow', 'aria-label': 'More actions', 'aria-haspopup': 'menu', 'aria-expanded': 'false', ...attributes,
    onclick: () => openMenu(button, (element.options ?? []).map((option) => ({
      label: wordsOf(option.text), description: wordsOf(option.description), choose: () => change(option, button),
    })), { label: 'More actions' }),
  }, icon('more'));
  return button;
}
