// Groups ranked by their distance to all others together: those that stand out in color, then by distance.
const RANKED = 8; // groups that are listed before more are asked for
const ranks = data.ranks;
const outlying = new Set(ranks.outlying);

function rankedGroups() {
  let all = false;
  const box = make('div', { class: 'forest ranks' });
  const more = make('button', { type: 'button', class: 'more', onclick: () => { all = true; paint(); } });
  const paint = () => {
    const few = ranks.names.length <= RANKED + 1 ? RANKED + 1 : Math.max(RANKED, Math.min(ranks.outlying.length, 12));
    const listed = all ? ranks.order : ranks.order.slice(0, few);
    box.replaceChildren(...rankedRows(listed));
    more.hidden = listed.length === ranks.order.length;
    more.textContent = `Show all ${whole(ranks.order.length)} groups`;
  };
  body('ranks').append(box, more);
  paint();
}

function rankedRows(listed) {
  const ends = listed.flatMap(k => [real(ranks.unbiased[k]), real(ranks.upper && ranks.upper[k]), real(ranks.lower && ranks.lower[k])]);
  const x = scale(ends, 0, 100, 4);
  const ticks = x.ticks.map(tick => make('span', { style: { left: `${x(tick)}%` } }, x.text(tick)));
  const axis = make('div', { class: 'row axis', 'aria-hidden': 'true' }, make('span'), make('div', { class: 'track' }, ...ticks), make('span'));
  return [axis, make('ol', {}, ...listed.map(k => make('li', {}, rankedRow(k, x))))];
}

function rankedRow(k, x) {
  const value = real(ranks.unbiased[k]), low = real(ranks.lower && ranks.lower[k]), high = real(ranks.upper && ranks.upper[k]);
  const interval = Number.isFinite(low) ? `${number(low)} to ${number(high)}` : null;
  const units = ranks.units ? `, ${whole(ranks.units[k])} ${joined(question.units)} units` : '';
  const closest = ranks.closest ? [' – ', bare(ranks.names[ranks.closest[k]], ranks.prefix, 20)] : [];
  const found = make('div', { class: `row ${outlying.has(k) ? 'c1 stands' : 'c0'}` },
    make('span', { class: 'names' }, bare(ranks.names[k], ranks.prefix, 20), ...closest),
    make('div', { class: 'track', 'aria-hidden': 'true' }, ...marksOf(value, low, high, x)),
    make('span', { class: 'value' }, make('b', {}, number(value)), interval ? make('small', {}, interval) : null));
  found.addEventListener('pointerenter', () => tell([isolated(ranks.names[k]), `${whole(ranks.rows[k])} rows${units}`], found.getBoundingClientRect()));
  found.addEventListener('pointerleave', hush);
  return found;
}

// A dot and the line of its interval; where there is none, a bar from 0.
function marksOf(value, low, high, x) {
  const found = [];
  if (Number.isFinite(low)) found.push(make('i', { class: 'whisker', style: { left: `${x(low)}%`, width: `${Math.max(0.3, x(high) - x(low))}%` } }));
  if (!Number.isNaN(value)) found.push(make('i', { class: 'dot', style: { left: `${x(value)}%` } }));
  return found;
}
