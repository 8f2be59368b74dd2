// The distance matrix: sorted, colored, with a cell to point at and to move through by keys.
const ORDERS = [['cluster', 'close ones side by side'], ['name', 'name'], ['size', 'size'], ['distance', 'mean distance']];
const NUMBERS = 10; // groups up to which cells hold numbers

function ordered(by) {
  const all = [...groups.names.keys()];
  if (by === 'cluster') return [...groups.cluster];
  if (by === 'size') return all.sort((a, b) => groups.rows[b] - groups.rows[a]);
  if (by === 'distance') return all.sort((a, b) => real(groups.distance[b] ?? -Infinity) - real(groups.distance[a] ?? -Infinity));
  return all.sort((a, b) => groups.names[a].localeCompare(groups.names[b], 'en', { numeric: true }));
}

function matrix() {
  let by = 'cluster';
  const box = make('div', { class: 'scroll' });
  const legend = make('p', { class: 'legend' });
  const paint = () => {
    const pairs = data.pairs[view];
    const top = Math.max(0, ...pairs.distance.map((_, k) => shown(pairs, k)).filter(Number.isFinite));
    box.replaceChildren(heat(ordered(by), pairs, top));
    legend.replaceChildren('0', make('span', { class: 'ramp', 'aria-hidden': 'true' }), number(top),
      make('span', { class: 'note' }, ' color grows with the square root of the distance'));
  };
  watchers.push(paint);
  const controls = make('div', { class: 'controls' }, viewChoice(),
    choice('Order', ORDERS, value => { by = value; paint(); }, by));
  body('matrix').append(controls, box, legend);
  paint();
}

function heat(order, pairs, top) {
  const dense = order.length > NUMBERS, tiny = order.length > 40;
  const head = make('tr', {}, make('td', { 'aria-hidden': 'true' }),
    ...order.map(i => make('th', { scope: 'col' }, bare(groups.names[i], groups.prefix, dense ? 14 : 24))));
  const rows = order.map((i, r) => make('tr', {}, make('th', { scope: 'row' }, bare(groups.names[i], groups.prefix, dense ? 18 : 28)),
    ...order.map((j, c) => cell(i, j, r, c, pairs, top))));
  const kind = `heat${dense ? ' dense' : ''}${tiny ? ' tiny' : ''}`;
  const found = make('table', { class: kind, role: 'grid', 'aria-label': `Distances between ${between} groups` },
    make('thead', {}, head), make('tbody', {}, ...rows));
  found.addEventListener('pointerover', event => point(event.target.closest('td[data-i]'), pairs));
  found.addEventListener('pointerleave', hush);
  found.addEventListener('focusin', event => point(event.target.closest('td[data-i]'), pairs));
  found.addEventListener('focusout', hush);
  found.addEventListener('click', event => pick(event.target.closest('td[data-i]')));
  found.addEventListener('keydown', event => move(event, order.length));
  return found;
}

function cell(i, j, row, column, pairs, top) {
  const tabindex = row === 0 && column === Math.min(1, groups.number - 1) ? 0 : -1;
  const common = { 'data-i': i, 'data-j': j, tabindex, role: 'gridcell' };
  if (i === j) return make('td', { ...common, class: 'self' }, '0');
  const value = shown(pairs, place(i, j));
  if (Number.isNaN(value)) return make('td', { ...common, class: 'self' }, '–');
  const share = value === Infinity ? 1 : top > 0 ? Math.sqrt(Math.max(value, 0) / top) : 0;
  return make('td', { ...common, style: { '--heat': share.toFixed(3) } }, number(value));
}

function lines(i, j, pairs) {
  if (i === j) return [isolated(groups.names[i]), `${whole(groups.rows[i])} rows`];
  const k = place(i, j);
  return [`${isolated(groups.names[i])} and ${isolated(groups.names[j])}: ${number(shown(pairs, k))}`, ...evidence(pairs, k)];
}

function point(target, pairs) {
  if (!target) { hush(); return; }
  const words = lines(Number(target.dataset.i), Number(target.dataset.j), pairs);
  target.setAttribute('aria-label', words.join(', '));
  tell(words, target.getBoundingClientRect());
}

// What scrolls takes the note away, but for a cell that keys have reached: reaching it may have scrolled.
function follow() {
  const reached = note.hidden ? null : document.querySelector('.heat td:focus-visible');
  point(reached, data.pairs[view]);
}

function pick(target) {
  if (target && target.dataset.i !== target.dataset.j) choosePair(Number(target.dataset.i), Number(target.dataset.j));
}

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function move(event, size) {
  const target = event.target.closest('td[data-i]');
  if (!target) return;
  if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); pick(target); return; }
  if (event.key === 'Escape') { hush(); return; }
  const row = target.parentElement, lines = row.parentElement.rows;
  let [r, c] = [row.sectionRowIndex, target.cellIndex - 1];
  if (MOVES[event.key]) [r, c] = [r + MOVES[event.key][0], c + MOVES[event.key][1]];
  else if (event.key === 'Home') c = 0;
  else if (event.key === 'End') c = size - 1;
  else return;
  event.preventDefault();
  const next = lines[Math.min(Math.max(r, 0), size - 1)].cells[Math.min(Math.max(c, 0), size - 1) + 1];
  target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
