// The icons of the page: strokes on a 20 by 20 grid, in the colour of the surrounding text.

const NS = 'http://www.w3.org/2000/svg';

const STROKES = {
  hash: 'M7.5 3.5 5.5 16.5 M14.5 3.5 12.5 16.5 M3.5 7.5H17 M3 12.5H16.5',
  close: 'M5 5 15 15 M15 5 5 15',
  chevron: 'M6 8 10 12 14 8',
  right: 'M8 5.5 12.5 10 8 14.5',
  left: 'M12 5.5 7.5 10 12 14.5',
  menu: 'M3.5 6H16.5 M3.5 10H16.5 M3.5 14H16.5',
  more: 'M10 4.6V4.7 M10 10V10.1 M10 15.4V15.5',
  reply: 'M4 4.5H16A1.5 1.5 0 0 1 17.5 6V12.5A1.5 1.5 0 0 1 16 14H9.5L6 17V14H4A1.5 1.5 0 0 1 2.5 12.5V6A1.5 1.5 0 0 1 4 4.5Z M6.5 8H13.5 M6.5 10.8H11',
  trace: 'M4.5 3.5V16.5 M4.5 5.5H9.5 M4.5 10H13.5 M4.5 14.5H16.5',
  copy: 'M7 7H16V16.5H7Z M4 13V3.5H13',
  send: 'M3 10 17 3.5 12.5 16.8 9.3 11.2Z M9.3 11.2 17 3.5',
  at: 'M13.2 10A3.2 3.2 0 1 1 6.8 10 3.2 3.2 0 0 1 13.2 10ZM13.2 10V11.2A2.1 2.1 0 0 0 17.4 11V10A7.4 7.4 0 1 0 14.4 16',
  slash: 'M3.5 3.5H16.5V16.5H3.5Z M11.5 6.8 8.5 13.2',
  mail: 'M3.5 5H16.5V15H3.5Z M3.8 5.6 10 10.8 16.2 5.6',
  idea: 'M7.5 14.5H12.5 M8.3 17.2H11.7 M10 2.8A5.2 5.2 0 0 1 13 12.2L12.5 14.5H7.5L7 12.2A5.2 5.2 0 0 1 10 2.8Z',
  sun: 'M13.2 10A3.2 3.2 0 1 1 6.8 10 3.2 3.2 0 0 1 13.2 10Z M10 2V3.6 M10 16.4V18 M2 10H3.6 M16.4 10H18 M4.4 4.4 5.5 5.5 M14.5 14.5 15.6 15.6 M4.4 15.6 5.5 14.5 M14.5 5.5 15.6 4.4',
  moon: 'M16.5 12.2A7 7 0 0 1 7.8 3.5 7 7 0 1 0 16.5 12.2Z',
  auto: 'M17 10A7 7 0 1 1 3 10 7 7 0 0 1 17 10Z M10 3V17 M10 5.5A4.5 4.5 0 0 1 10 14.5',
  check: 'M4.5 10.5 8.3 14.3 15.8 6',
  eye: 'M2 10S5 4.8 10 4.8 18 10 18 10 15 15.2 10 15.2 2 10 2 10Z M12.4 10A2.4 2.4 0 1 1 7.6 10 2.4 2.4 0 0 1 12.4 10Z',
  file: 'M5 2.8H11.5L15.5 6.8V17.2H5Z M11.3 2.9V7H15.4',
  download: 'M10 3.5V12 M6.5 8.8 10 12.3 13.5 8.8 M4 16.3H16',
  alert: 'M10 3 18 16.8H2Z M10 8.2V11.8 M10 14.2V14.3',
  home: 'M3.5 9.2 10 3.5 16.5 9.2V16.5H12V12H8V16.5H3.5Z',
  refresh: 'M16 7A6.5 6.5 0 1 0 16.4 11.5 M16.4 3.4V7.2H12.6',
  thumbsup: 'M6 9 9.3 3.2A1.8 1.8 0 0 1 11.6 5L11 8H15.3A1.5 1.5 0 0 1 16.8 9.8L15.6 15A1.6 1.6 0 0 1 14 16.3H6Z M3.2 9H6V16.3H3.2Z',
  thumbsdown: 'M14 11 10.7 16.8A1.8 1.8 0 0 1 8.4 15L9 12H4.7A1.5 1.5 0 0 1 3.2 10.2L4.4 5A1.6 1.6 0 0 1 6 3.7H14Z M16.8 11H14V3.7H16.8Z',
  trash: 'M3.8 5.5H16.2 M7.5 5.3V3.2H12.5V5.3 M5.2 5.5 6 16.8H14L14.8 5.5 M8.4 8.5V13.8 M11.6 8.5V13.8',
  wrench: 'M13 3.2A4.4 4.4 0 0 0 8 9L3.2 13.8A2 2 0 0 0 6.2 16.8L11 12A4.4 4.4 0 0 0 16.8 7L14 9.2 10.8 6Z',
  play: 'M6.5 4.5 15.5 10 6.5 15.5Z',
  pause: 'M7 4.5V15.5 M13 4.5V15.5',
  link: 'M8.5 11.5 11.5 8.5 M9 6 11 4A3.2 3.2 0 0 1 16 9L14 11 M11 14 9 16A3.2 3.2 0 0 1 4 11L6 9',
};

/** Returns the icon as an `<svg>`. It is hidden from screen readers, which read the text next to it or the button's label. */
export function icon(name, size = 18) {
  const svg = document.createElementNS(NS, 'svg');
  for (const [key, value] of Object.entries({
    viewBox: '0 0 20 20', width: size, height: size, fill: 'none', stroke: 'currentColor', 'aria-hidden': 'true',
    'stroke-width': name === 'more' ? 2.4 : 1.6, 'stroke-linecap': 'round', 'stroke-linejoin': 'round', class: 'icon',
  })) svg.setAttribute(key, value);
  const path = document.createElementNS(NS, 'path');
  path.setAttribute('d', STROKES[name] ?? STROKES.alert);
  svg.append(path);
  return svg;
}
