// Completes @names and /commands while a person types. Up and Down select, Tab or Enter accepts,
// Escape closes the list.

import { h, fill, freshId } from './dom.js';
import { avatar } from './avatar.js';
import { icon } from './icons.js';
import { bot, known, nameOf } from './store.js';

/** Watches the text area and shows the list in `place`. Returns a key handler, which returns true for a key of the list. */
export function autocomplete(area, place) {
  const list = h('div', { class: 'completions', role: 'listbox', id: freshId('completions'), 'aria-label': 'Suggestions', hidden: true });
  place.append(list);
  for (const [name, value] of Object.entries({ 'aria-autocomplete': 'list', 'aria-haspopup': 'listbox', 'aria-controls': list.id })) area.setAttribute(name, value);
  let found = null;
  let at = 0;

  const close = () => {
    found = null;
    draw();
  };
  const take = (item) => {
    area.setRangeText(item.insert, found.from, area.selectionStart, 'end');
    close();
    area.focus();
    area.dispatchEvent(new Event('input'));
    close();
  };
  const draw = () => {
    list.hidden = !found;
    area.removeAttribute('aria-activedescendant');
    if (!found) return;
    fill(list, found.items.map((item, index) => {
      const row = h('div', {
        class: 'completion', role: 'option', id: `${list.id}-${index}`, 'aria-selected': String(index === at),
        onpointerdown: (event) => { event.preventDefault(); take(item); },
      }, item.face, h('span', { class: 'completion-name' }, item.name), h('span', { class: 'completion-more' }, item.more));
      return row;
    }));
    area.setAttribute('aria-activedescendant', `${list.id}-${at}`);
    list.children[at]?.scrollIntoView({ block: 'nearest' });
  };

  area.addEventListener('input', () => {
    found = search(area.value.slice(0, area.selectionStart));
    at = 0;
    draw();
  });
  area.addEventListener('blur', close);
  return (event) => {
    if (!found) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      at = (at + step + found.items.length) % found.items.length;
      draw();
    } else if (event.key === 'Enter' || event.key === 'Tab') take(found.items[at]);
    else if (event.key === 'Escape') close();
    else return false;
    event.preventDefault();
    return true;
  };
}

// Returns the completions of the text before the caret: `{ from, items }`, or nothing.
function search(before) {
  const command = /^\/([\w-]*)$/.exec(before);
  const name = /(?:^|\s)@([\w.-]*)$/.exec(before);
  const items = command ? commands(command[1]) : name ? names(name[1]) : [];
  return items.length ? { from: before.length - (command ?? name)[1].length - 1, items } : null;
}

function commands(typed) {
  return known.commands.filter(({ command }) => command.slice(1).startsWith(typed.toLowerCase()) && command.slice(1) !== typed)
    .map(({ command, description, usage_hint: hint }) => ({
      insert: `${command} `, name: `${command}${hint ? ` ${hint}` : ''}`, more: description, face: icon('slash', 20),
    }));
}

function names(typed) {
  const wanted = typed.toLowerCase();
  const fits = (someone) => [someone.name, nameOf(someone)].some((name) => name.toLowerCase().startsWith(wanted));
  const everybody = [bot(), ...[...known.users.values()].filter((one) => !one.is_bot && one.id !== known.me)];
  return everybody.filter((one) => one && fits(one) && one.name !== typed)
    .map((one) => ({ insert: `@${one.name} `, name: nameOf(one), more: one.is_bot ? 'App' : `@${one.name}`, face: avatar(one, 20) }));
}
