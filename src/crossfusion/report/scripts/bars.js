// Attribution: which features and which units the variance between the groups is made of.
const BARS = 12;

function attribution() {
  const units = data.units ? [attributed(data.units, `By ${joined([data.units.over])}`, '')] : [];
  const found = [attributed(data.features, 'By feature', 'feature '), ...units].filter(Boolean);
  body('attribution').append(make('div', { class: 'pair' }, ...found));
}

function attributed(found, title, prefix) {
  const usable = found.share.map(real).filter(Number.isFinite);
  if (!usable.length) return make('div', {}, make('h3', {}, title), make('p', { class: 'note' }, 'Nothing lies between the groups.'));
  let all = false;
  const most = Math.max(...usable.map(Math.abs));
  const box = make('ol', { class: 'bars' });
  const more = make('button', { type: 'button', class: 'more', onclick: () => { all = true; paint(); } }, `Show ${found.labels.length}`);
  const paint = () => {
    const number = all ? found.labels.length : Math.min(BARS, found.labels.length);
    box.replaceChildren(...found.labels.slice(0, number).map((label, k) => barOf(found, k, most, prefix)));
    more.hidden = number === found.labels.length;
  };
  paint();
  const rest = found.rest === null ? null : make('p', { class: 'note' }, `The ${whole(found.number - found.labels.length)} after the first ${whole(found.labels.length)} add up to ${percent(found.rest)}.`);
  return make('div', {}, make('h3', {}, title), box, more, rest);
}

// The distance without one feature or unit, as a share of the distance with all of them.
function left(without) {
  const ratio = real(without) / real((data.pairs.adjusted ? data.distances.adjusted : data.distances.plain).distance);
  return Number.isFinite(ratio) ? percent(ratio) : '–';
}

function barOf(found, k, most, prefix) {
  const share = real(found.share[k]);
  const label = /^\d+$/.test(found.labels[k]) ? prefix + found.labels[k] : found.labels[k];
  return make('li', {},
    make('span', { class: 'names' }, named(label, 22)),
    make('div', { class: 'track', 'aria-hidden': 'true' }, make('i', { class: share < 0 ? 'against' : '', style: { width: `${100 * Math.abs(share) / most}%` } })),
    make('span', { class: 'value' }, make('b', {}, percent(share)), make('small', {}, `without it: ${left(found.without[k])}`)));
}
