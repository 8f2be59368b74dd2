// Where the variance lies: levels as parts of one bar, and the same in numbers.
function levels() {
  const titles = ['Unadjusted', `With ${given} first`];
  body('levels').append(make('div', { class: 'stacked' }, ...data.levels.map((entry, k) => hierarchy(entry, titles[k]))));
}

// Levels add on the scale of the distance; as parts of the variance they are differences of exp(−sum so far).
function parts(entry) {
  let sum = 0;
  const found = entry.levels.map(level => {
    const before = Math.exp(-sum);
    sum += level.distance === null ? 0 : real(level.distance); // a level that compares nothing adds nothing
    return before - Math.exp(-sum);
  });
  return [...found, Math.exp(-sum)];
}

function hierarchy(entry, title) {
  const shares = parts(entry);
  const order = [...new Set(data.levels.flatMap(each => each.levels.map(level => level.level)))];  // a level has one color
  const names = [...entry.levels.map(level => level.level), 'within the finest groups'];
  const color = k => k < entry.levels.length ? `c${order.indexOf(names[k]) % 8}` : 'rest';
  const said = names.map((name, k) => `${short(name)} ${percent(shares[k])}`).join(', ');
  const bar = make('div', { class: 'bar', role: 'img', 'aria-label': `${title}: ${said}` },
    ...shares.map((share, k) => make('span', { class: color(k), style: { 'flex-grow': String(Math.max(share, 0)) } },
      share > 0.14 ? make('em', {}, percent(share)) : null)));
  const mark = k => make('span', {}, make('i', { class: `swatch ${color(k)}`, 'aria-hidden': 'true' }), k < entry.levels.length ? named(names[k], 24) : names[k]);
  const rows = entry.levels.map((level, k) => [mark(k), level.distance === null ? '–' : percent(shares[k])]);
  rows.push([mark(entry.levels.length), percent(shares.at(-1))]);
  rows.push([make('b', {}, 'whole'), percent(shares.reduce((a, b) => a + b, 0))]);
  return make('div', {}, make('h3', {}, title), bar,
    table('Share of the observed variance at each level', ['level', 'variance'], rows));
}
