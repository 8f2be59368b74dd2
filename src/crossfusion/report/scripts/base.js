// What all sections share: the data, elements whose text is text, numbers for people, and the note beside the pointer.
const data = JSON.parse(document.getElementById('data').textContent);
const SVG = 'http://www.w3.org/2000/svg';
const LONG = 32;

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') for (const [key, entry] of Object.entries(value)) element.style.setProperty(key, entry);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
const body = id => document.getElementById(`${id}-body`);

// Numbers come as numbers, as null where undefined, and as the text "inf".
const real = value => value === null || value === undefined ? NaN : value === 'inf' ? Infinity : Number(value);

// Four significant digits in plain notation; below 0.0001 in size only the bound.
function number(value) {
  const found = real(value);
  if (Number.isNaN(found)) return '–';
  if (!Number.isFinite(found)) return found > 0 ? '∞' : '−∞';
  const size = Math.abs(found);
  if (size === 0) return '0';
  if (size < 0.0001) return found > 0 ? '< 0.0001' : '> −0.0001';
  const text = size >= 1e6 ? found.toExponential(3) : size >= 999.95 ? whole(found) : found.toPrecision(4);
  return text.replaceAll('-', '−');
}

const percent = value => {
  const share = real(value);
  if (!Number.isFinite(share)) return '–';
  if (share === 0 || share === 1) return `${100 * share}%`;
  if (Math.abs(share) < 0.001) return share > 0 ? '< 0.1%' : '> −0.1%';
  if (share >= 0.9995 && share < 1) return '> 99.9%';
  return `${(100 * share).toFixed(1).replace('-', '−')}%`;
};
const whole = value => Math.round(value).toLocaleString('en-GB');
function probability(value) {
  const text = number(value);
  return text.includes('.') && !text.startsWith('<') ? text.replace(/0+$/, '').replace(/\.$/, '') : text;
}

// A variance: as a number, but never only a bound.
function quantity(value) {
  const size = Math.abs(real(value));
  return size > 0 && size < 0.0001 ? real(value).toExponential(3).replaceAll('-', '−') : number(value);
}

const ofVariance = distance => percent(Math.max(0, -Math.expm1(-real(distance))));

function short(text, length = LONG) {
  const line = text.split(/\s+/).join(' ').trim();
  const letters = [...line];
  const tail = Math.floor(length / 3);
  return letters.length <= length ? line : `${letters.slice(0, length - tail - 1).join('')}…${letters.slice(-tail).join('')}`;
}

// A name that keeps its direction of writing to itself; a long one is cut, and whole in its title.
function named(text, length = LONG) {
  const cut = short(text, length);
  return make('bdi', { title: cut === text ? null : text.slice(0, 2000) }, cut);
}

// A name without the start that all names share, which its title keeps.
function bare(text, prefix, length = LONG) {
  const found = named(text.slice(prefix.length), length);
  if (prefix) found.title = text.slice(0, 2000);
  return found;
}

const isolated = text => `\u2068${short(text)}\u2069`;
const joined = names => names.map(name => short(name)).join(' × ');

function choice(text, options, change, value) {
  const select = make('select', { onchange: event => change(event.target.value) },
    ...options.map(([key, label]) => make('option', { value: key, selected: key === value }, label)));
  return make('label', { class: 'choice' }, make('span', {}, text), select);
}

const note = make('div', { class: 'tip', 'aria-hidden': 'true', hidden: true });

function tell(lines, box) {
  note.replaceChildren(...lines.map((line, k) => make(k ? 'span' : 'b', {}, line)));
  note.hidden = false;
  const own = note.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const left = Math.min(Math.max(8, box.left + box.width / 2 - own.width / 2), room - own.width - 8);
  const top = box.top - own.height - 10 > 0 ? box.top - own.height - 10 : box.bottom + 10;
  note.style.left = `${Math.max(8, left)}px`;
  note.style.top = `${top}px`;
}

const hush = () => { note.hidden = true; };

// Draw into a box, and again whenever its width changes: letters keep their size on every screen.
function fitted(box, paint) {
  let last = 0;
  const look = () => {
    const width = Math.floor(box.clientWidth);
    if (width > 0 && width !== last) { last = width; paint(width); }
  };
  look();
  new ResizeObserver(look).observe(box);
  return () => { last = 0; look(); };
}

// Of groups i and j, the place of their pair in the upper triangle, row by row.
const groups = data.groups;
function place(i, j) {
  const [a, b] = i < j ? [i, j] : [j, i];
  return a * groups.number - a * (a + 1) / 2 + b - a - 1;
}

const at = (pairs, name, k) => pairs[name] ? pairs[name][k] : null;

// What is shown of a pair: the unbiased distance, and nothing where nothing is compared.
function shown(pairs, k) {
  return real(pairs.unbiased[k]);
}
