// The rows on the plane that separates the groups most, unadjusted or adjusted, colored by any factor.
const COLORED = 8; // groups with a color of their own; the others are gray until they are chosen
const LISTED = 12;
const SHOWN = [['adjusted', `adjusted for ${given}`], ['plain', 'unadjusted']].filter(([key]) => data.projection.views[key]);

function cloud() {
  const state = { view: SHOWN[0][0], factor: 0, chosen: null };
  if (SHOWN.every(([key]) => data.projection.views[key].shown === null)) {
    body('cloud').append(make('p', { class: 'note' }, 'The groups’ means agree, so no plane separates them.'));
    return;
  }
  const box = make('div', { class: 'figure cloud' });
  const legend = make('div', { class: 'keys' });
  const said = make('p', { class: 'note' });
  const paint = fitted(box, width => box.replaceChildren(paintCloud(state, width)));
  const refresh = () => { legend.replaceChildren(...keysOf(state, refresh)); said.textContent = explained(state.view); paint(); };
  const options = data.projection.factors.map((entry, k) => [String(k), short(entry.name)]);
  const controls = make('div', { class: 'controls' }, viewSwitch(state, refresh),
    choice('Color by', options, value => { state.factor = Number(value); state.chosen = null; refresh(); }, '0'));
  body('cloud').append(controls, box, legend, said);
  refresh();
}

// One of two ways to look, as buttons side by side.
function viewSwitch(state, refresh) {
  if (SHOWN.length < 2) return null;
  const buttons = SHOWN.map(([key, words]) => make('button', { type: 'button', 'aria-pressed': String(state.view === key) }, words));
  buttons.forEach((button, k) => button.addEventListener('click', () => {
    state.view = SHOWN[k][0];
    buttons.forEach((each, n) => each.setAttribute('aria-pressed', String(n === k)));
    refresh();
  }));
  return make('div', { class: 'toggle', role: 'group', 'aria-label': 'Projection' }, ...buttons);
}

function explained(key) {
  const view = data.projection.views[key];
  const from = key === 'adjusted' ? `, relative to the mean of each ${given}` : '';
  const rows = view.at ? `Dots are ${whole(view.at.length)} ${view.at.length === data.about.rows ? '' : 'randomly drawn '}rows${from}, rings` : `Rings${from}, since a summary has no rows, are`;
  const share = view.shown === null ? 'the means agree' : `the plane shows ${percent(view.shown)} of the variance between the groups`;
  return `${rows} ${view.at ? 'are ' : ''}the means of groups; ${share}.`;
}

// Groups that stand out are colored first; without any, few groups all are, and of many none.
function colors(state) {
  const labels = data.projection.factors[state.factor].labels;
  const found = labels.map(() => 'other');
  if (state.factor === 0 && outlying.size && labels.length > COLORED) ranks.outlying.slice(0, COLORED).forEach((k, n) => { found[k] = HUES[n]; });
  else if (state.factor === 0 && outlying.size) {
    const first = [...ranks.outlying, ...labels.keys()].filter((k, n, all) => all.indexOf(k) === n);
    first.forEach((k, n) => { found[k] = HUES[n]; });
  } else if (labels.length <= COLORED) labels.forEach((_, k) => { found[k] = `c${k}`; });
  return found;
}

const HUES = ['c1', 'c3', 'c2', 'c4', 'c6', 'c7', 'c0', 'c5'];

function keysOf(state, refresh) {
  const { labels } = data.projection.factors[state.factor];
  const color = colors(state), prefix = state.factor === 0 ? ranks.prefix : '';
  const listed = [...labels.keys()].sort((a, b) => (color[a] === 'other') - (color[b] === 'other') || a - b).slice(0, LISTED)
    .filter((k, _, all) => color[k] !== 'other' || all.every(each => color[each] === 'other'));
  const choose = k => { state.chosen = state.chosen === k ? null : k; refresh(); };
  const found = listed.map(k => make('button', { type: 'button', 'aria-pressed': String(state.chosen === k), onclick: () => choose(k) },
    make('i', { class: `swatch ${state.chosen === k && color[k] === 'other' ? 'c1' : color[k]}`, 'aria-hidden': 'true' }), bare(labels[k], prefix, 24)));
  const more = labels.length - listed.length;
  return [...found, more > 0 ? make('span', { class: 'note' }, `and ${whole(more)} more`) : null].filter(Boolean);
}

function paintCloud(state, width) {
  const view = data.projection.views[state.view], factor = data.projection.factors[state.factor];
  const all = [...view.means.flat(), ...(view.at || [])];
  const [low, high] = [Math.min, Math.max].map(end => [0, 1].map(k => all.reduce((best, place) => end(best, place[k]), 0)));
  const margin = 14, span = Math.max(high[0] - low[0], 1);
  const tall = Math.min(0.5, Math.max(0.4, (high[1] - low[1]) / span));
  const height = Math.round((width - 2 * margin) * tall) + 2 * margin + 20;
  const unit = Math.min((width - 2 * margin) / span, (height - 2 * margin - 20) / Math.max(high[1] - low[1], 1));
  const [midX, midY] = [0, 1].map(k => (low[k] + high[k]) / 2);
  const x = value => width / 2 + (value - midX) * unit;
  const y = value => (height - 20) / 2 - (value - midY) * unit;
  const said = `${factor.labels.length} groups of ${short(factor.name)}, ${SHOWN.find(([key]) => key === state.view)[1]}`;
  const svg = picture(width, height, 'The plane that separates the groups most', said, 'cloud');
  const color = colors(state), means = view.means[state.factor];
  svg.append(density(view, x, y, unit), ...dots(state, view, color, x, y), ...rings(state, factor, means, color, x, y));
  const prefix = state.factor === 0 ? ranks.prefix : '';
  const large = [...factor.labels.keys()].filter(k => state.chosen === null ? color[k] !== 'other' : state.chosen === k)
    .map(k => ({ name: factor.labels[k].slice(prefix.length), x: x(means[k][0]), y: y(means[k][1]) }));
  svg.append(...labels(large, 0, width, height - 20));
  svg.append(text(view.second === 'between' ? '→ separates most, ↑ next' : '→ separates most', width - 4, height - 5, 'end', 'axis'));
  return svg;
}

function density(view, x, y, unit) {
  const found = view.density;
  const layer = draw('g', { class: 'density' });
  if (!found) return layer;
  const most = Math.max(...found.cells.map(entry => entry[2]));
  for (const [i, j, count] of found.cells) {
    layer.append(draw('rect', {
      x: x(found.low[0] + i * found.step).toFixed(1), y: y(found.low[1] + (j + 1) * found.step).toFixed(1),
      width: (found.step * unit + 0.4).toFixed(1), height: (found.step * unit + 0.4).toFixed(1), opacity: (0.03 + 0.22 * Math.sqrt(count / most)).toFixed(2),
    }));
  }
  return layer;
}

// All points of a color in one path: thousands cost as little as one.
function dots(state, view, color, x, y) {
  if (!view.at) return [];
  const codes = data.projection.codes[state.factor], paths = new Map();
  view.at.forEach(([px, py], k) => {
    const own = codes[k];
    const kind = own < 0 ? 'other' : state.chosen === null ? color[own] : own === state.chosen ? (color[own] === 'other' ? 'c1' : color[own]) : 'faint';
    paths.set(kind, `${paths.get(kind) || ''}M${x(px).toFixed(1)} ${y(py).toFixed(1)}h0`);
  });
  const behind = kind => (kind === 'faint' || kind === 'other' ? 0 : kind === 'c1' ? 2 : 1);
  const order = [...paths.keys()].sort((a, b) => behind(a) - behind(b));
  return order.map(kind => draw('path', { d: paths.get(kind), class: `dots ${kind}` }));
}

function rings(state, factor, means, color, x, y) {
  const seen = [...factor.labels.keys()].filter(k => state.chosen === null || k === state.chosen)
    .sort((a, b) => (color[b] === 'other') - (color[a] === 'other'));
  return seen.map(k => {
    const kind = state.chosen === k && color[k] === 'other' ? 'c1' : color[k];
    const found = draw('circle', { cx: x(means[k][0]).toFixed(1), cy: y(means[k][1]).toFixed(1), r: kind === 'other' ? 3.5 : 6.5, class: `mean ${kind}` });
    found.addEventListener('pointerenter', () => tell([isolated(factor.labels[k]), 'mean of its rows'], found.getBoundingClientRect()));
    found.addEventListener('pointerleave', hush);
    return found;
  });
}
