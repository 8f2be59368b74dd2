// Pairs with their intervals, farthest first.
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
  const interval = Number.isFinite(low) ? make('small', {}, `${number(low)} to ${number(high)}`) : null;
  return make('button', { type: 'button', class: 'row c0', onclick: () => choosePair(i, j) },
    make('span', { class: 'names' }, bare(groups.names[i], groups.prefix, 20), ' – ', bare(groups.names[j], groups.prefix, 20)),
    make('div', { class: 'track', 'aria-hidden': 'true' }, ...marksOf(value, low, high, x)),
    make('span', { class: 'value' }, make('b', {}, number(value)), interval));
}
