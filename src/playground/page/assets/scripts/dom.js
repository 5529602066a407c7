// Builds DOM nodes. All content of the page is built here: text becomes text nodes, never markup.

/** Creates `h('p', { class: 'note', onclick: f, 'aria-label': 'x' }, 'words', node, [more])`. Skips null and false. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'dataset') Object.assign(element.dataset, value);
    else if (name === 'vars') for (const [key, to] of Object.entries(value)) element.style.setProperty(`--${key}`, to);
    else if (name === 'value' || name === 'checked') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  return add(element, children);
}

/** Appends children, in the forms that `h` accepts. */
export function add(parent, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) parent.append(child);
  }
  return parent;
}

/** Replaces the children of `parent` by these. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  return add(parent, ...children);
}

/** Fills `parent` with the result of `make`, unless it is shown already. The focus is kept. */
export function redraw(parent, signature, make) {
  if (parent.signature === signature) return;
  parent.signature = signature;
  const reachable = () => [...parent.querySelectorAll('button, summary')];
  const at = reachable().indexOf(document.activeElement);
  fill(parent, make());
  if (at >= 0) reachable()[at]?.focus();
}

/**
 * Makes `parent` show `items` in order, each `{ key, signature, make }`. An unchanged item keeps its node, and so its
 * focus, selection and unfinished input.
 */
export function reconcile(parent, items) {
  const old = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let place = parent.firstElementChild;
  for (const { key, signature, make } of items) {
    let node = old.get(key);
    old.delete(key);
    if (!node || node.signature !== signature) {
      const fresh = make();
      fresh.dataset.key = key;
      fresh.signature = signature;
      if (node) {
        const hadFocus = node.contains(document.activeElement);
        if (place === node) place = node.nextElementSibling;
        node.replaceWith(fresh);
        if (hadFocus) focusOn(fresh);
      }
      node = fresh;
    }
    if (node.parentNode === parent && node === place) place = node.nextElementSibling;
    else if (node.parentNode !== parent || node.nextElementSibling !== place) parent.insertBefore(node, place);
  }
  for (const gone of old.values()) gone.remove();
}

function focusOn(element) {
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
}

let counter = 0;

/** Returns a unique element id. */
export function freshId(prefix = 'id') {
  counter += 1;
  return `${prefix}-${counter}`;
}
