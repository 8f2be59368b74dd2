// Pairs with their intervals, farthest first, and all that is known of the pair that was chosen.
const FIRST = 20; // pairs that are listed before more are asked for

function listOfPairs() {
  const found = [];
  for (let i = 0; i < groups.number; i += 1) for (let j = i + 1; j < groups.number; j += 1) found.push([i, j, place(i, j)]);
  return found;
}

function forest() {
  let only = '', all = false;
  const box = make('div', { class: 'forest' });
  const more = make('button', { type: 'button', class: 'more', onclick: () => { all = true; paint(); } });
  const paint = () => {
    const pairs = data.pairs[view];
    const wanted = listOfPairs().filter(([i, j]) => only === '' || i === Number(only) || j === Number(only))
      .map(([i, j, k]) => [i, j, k, shown(pairs, k)]).sort((a, b) => (Number.isNaN(b[3]) ? -1 : b[3]) - (Number.isNaN(a[3]) ? -1 : a[3]));
    const listed = all ? wanted : wanted.slice(0, FIRST);
    box.replaceChildren(...rowsOf(listed, pairs));
    more.hidden = listed.length === wanted.length;
    more.textContent = `Show all ${whole(wanted.length)} pairs`;
  };
  watchers.push(paint);
  const options = [['', 'all'], ...groups.names.map((name, k) => [String(k), short(name)])];
  const controls = make('div', { class: 'controls' }, viewChoice(),
    groups.number > 2 ? choice('Pairs of', options, value => { only = value; all = false; paint(); }, '') : null);
  body('forest').append(controls, box, more);
  paint();
}

function rowsOf(listed, pairs) {
  const ends = listed.flatMap(([, , k, value]) => [value, real(at(pairs, 'upper', k)), real(at(pairs, 'lower', k))]);
  const x = scale(ends, 0, 100);
  const ticks = x.ticks.map(tick => make('span', { style: { left: `${x(tick)}%` } }, x.text(tick)));
  const axis = make('div', { class: 'row axis', 'aria-hidden': 'true' }, make('span'), make('div', { class: 'track' }, ...ticks), make('span'));
  return [axis, make('ol', {}, ...listed.map(entry => make('li', {}, row(entry, pairs, x))))];
}

function row([i, j, k, value], pairs, x) {
  const low = real(at(pairs, 'lower', k)), high = real(at(pairs, 'upper', k));
  const marks = [];
  if (Number.isFinite(low)) {
    marks.push(make('i', { class: 'whisker', style: { left: `${x(low)}%`, width: `${Math.max(0.3, x(high) - x(low))}%` } }));
  }
  if (!Number.isNaN(value)) marks.push(make('i', { class: 'dot', style: { left: `${x(value)}%` } }));
  const interval = Number.isFinite(low) ? make('small', {}, `${number(low)} to ${number(high)}`) : null;
  return make('button', { type: 'button', class: 'row', onclick: () => choosePair(i, j, true) },
    make('span', { class: 'names' }, named(groups.names[i], 20), ' – ', named(groups.names[j], 20)),
    make('div', { class: 'track', 'aria-hidden': 'true' }, ...marks),
    make('span', { class: 'value' }, make('b', {}, number(value)), interval));
}

function choosePair(i, j, go) {
  const box = body('pair');
  const title = make('h3', { tabindex: -1 }, named(groups.names[i]), ' and ', named(groups.names[j]));
  const k = place(i, j);
  const columns = [['distance', 'plug-in', number], ['unbiased', 'unbiased', number], ['lower', 'lower limit', number],
    ['upper', 'upper limit', number], ['pvalue', 'p', probability], ['adjusted', 'p, adjusted', probability], ['overlap', 'overlap', percent]];
  const kept = columns.filter(([name]) => VIEWS.some(([key]) => data.pairs[key][name]));
  const rows = VIEWS.map(([key, words]) => [words, ...kept.map(([name, , write]) => write(at(data.pairs[key], name, k)))]);
  const said = VIEWS.map(([key, words]) => {
    const value = shown(data.pairs[key], k);
    return Number.isNaN(value) ? `Nothing can be compared ${words}.` : `${ofVariance(value)} of the variance of these two lies between them, ${words}.`;
  });
  const sizes = [i, j].map(g => {
    const units = groups.units ? `, ${whole(groups.units[g])} ${joined(question.units)} units` : '';
    return make('li', {}, fullName(groups.names[g]), `: ${whole(groups.rows[g])} rows${units}, variance ${number(groups.dispersion[g])}`);
  });
  box.replaceChildren(title, make('p', {}, said.join(' ')), make('ul', {}, ...sizes),
    table('This pair in numbers', ['groups compared', ...kept.map(([, words]) => words)], rows));
  if (go) { title.scrollIntoView({ block: 'center' }); title.focus({ preventScroll: true }); }
}

// A name in full: behind a cut one that opens, where it is long.
function fullName(name) {
  if (short(name) === name) return make('bdi', {}, name);
  return make('details', { class: 'full' }, make('summary', {}, make('bdi', {}, short(name))), make('bdi', {}, name));
}

function pair() {
  const farthest = listOfPairs().map(([i, j, k]) => [i, j, shown(data.pairs[view], k)]).filter(entry => !Number.isNaN(entry[2]))
    .reduce((a, b) => (a && a[2] >= b[2] ? a : b), null);
  choosePair(...(farthest ? farthest.slice(0, 2) : [0, 1]), false);
}
