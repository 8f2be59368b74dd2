// Where the variance lies: levels as parts of one bar, and the same in numbers.
function levels() {
  const titles = ['As the rows come', `With ${given} first`];
  body('levels').append(make('div', { class: 'stacked' }, ...data.levels.map((entry, k) => hierarchy(entry, titles[k]))));
}

// Levels add on the scale of the distance; as parts of the variance they are differences of exp(−sum so far).
function parts(entry, column) {
  let sum = 0;
  const found = entry.levels.map(level => {
    const before = Math.exp(-sum);
    sum += real(level[column]);
    return before - Math.exp(-sum);
  });
  return [...found, Math.exp(-sum)];
}

function hierarchy(entry, title) {
  const known = entry.unbiased !== null;
  const least = parts(entry, known ? 'unbiased' : 'distance').map(share => Math.max(share, 0)); // a part below zero is none
  const shares = least.map(share => share / least.reduce((a, b) => a + b, 0));
  const order = [...new Set(data.levels.flatMap(each => each.levels.map(level => level.level)))];  // a level has one color
  const names = [...entry.levels.map(level => level.level), 'within the finest groups'];
  const color = k => k < entry.levels.length ? `c${order.indexOf(names[k]) % 8}` : 'rest';
  const said = names.map((name, k) => `${short(name)} ${percent(shares[k])}`).join(', ');
  const bar = make('div', { class: 'bar', role: 'img', 'aria-label': `${title}: ${said}` },
    ...shares.map((share, k) => make('span', { class: color(k), style: { 'flex-grow': String(Math.max(share, 0)) } },
      share > 0.14 ? make('em', {}, percent(share)) : null)));
  const mark = k => make('span', {}, make('i', { class: `swatch ${color(k)}`, 'aria-hidden': 'true' }), k < entry.levels.length ? named(names[k], 24) : names[k]);
  const rows = entry.levels.map((level, k) => [mark(k), percent(shares[k]), number(level.unbiased), number(level.distance)]);
  rows.push([mark(entry.levels.length), percent(shares.at(-1)), '', '']);
  rows.push([make('b', {}, 'whole'), percent(shares.reduce((a, b) => a + b, 0)), number(entry.unbiased), number(entry.distance)]);
  const how = known ? 'without the bias of small samples' : 'plug-in, as no variance within the finest groups is known';
  return make('div', {}, make('h3', {}, title), bar,
    table(`Share of the variance (${how}) and distance of each level`, ['level', 'variance', 'unbiased', 'plug-in'], rows));
}
