// The fused cloud on the plane that separates the groups most, colored by any factor.
const COLORED = 8; // groups with a color of their own; the others are gray until they are chosen
const LISTED = 30;

function cloud() {
  const found = data.projection;
  if (found.shown === null) return;
  let factor = found.factors[0], chosen = null;
  const box = make('div', { class: 'figure cloud' });
  const legend = make('div', { class: 'keys' });
  const paint = fitted(box, width => box.replaceChildren(paintCloud(factor, chosen, width)));
  const choose = k => { chosen = chosen === k ? null : k; keys(); paint(); };
  const keys = () => legend.replaceChildren(...keysOf(factor, chosen, choose));
  const options = found.factors.map((entry, k) => [String(k), short(entry.name)]);
  const controls = make('div', { class: 'controls' },
    choice('Color by', options, value => { factor = found.factors[Number(value)]; chosen = null; keys(); paint(); }, '0'));
  body('cloud').append(controls, make('div', { class: 'beside' }, box, legend));
  keys();
}

function sizes(factor) {
  const count = factor.labels.map(() => 0);
  const points = data.projection.points;
  if (points) for (const code of points.codes[factor.name]) if (code >= 0) count[code] += 1;
  return count;
}

// Colors go to the groups with the most rows, in the order of their names.
function colors(factor) {
  const count = sizes(factor);
  const largest = [...count.keys()].sort((a, b) => count[b] - count[a] || a - b).slice(0, COLORED).sort((a, b) => a - b);
  const found = factor.labels.map(() => 'other');
  largest.forEach((k, n) => { found[k] = `c${n}`; });
  return found;
}

function keysOf(factor, chosen, choose) {
  const color = colors(factor);
  const listed = [...factor.labels.keys()].sort((a, b) => (color[a] === 'other') - (color[b] === 'other') || a - b).slice(0, LISTED);
  const found = listed.map(k => make('button', { type: 'button', 'aria-pressed': String(chosen === k), onclick: () => choose(k) },
    make('i', { class: `swatch ${chosen === k && color[k] === 'other' ? 'c1' : color[k]}`, 'aria-hidden': 'true' }), named(factor.labels[k], 24)));
  const more = factor.labels.length - listed.length;
  return [...found, more > 0 ? make('span', { class: 'note' }, `and ${whole(more)} more`) : null].filter(Boolean);
}

function paintCloud(factor, chosen, width) {
  const found = data.projection;
  const all = [...found.factors.flatMap(entry => entry.means), ...(found.points ? found.points.at : [])];
  const [low, high] = [Math.min, Math.max].map(end => [0, 1].map(k => all.reduce((best, place) => end(best, place[k]), 0)));
  const margin = 16, span = Math.max(high[0] - low[0], 1);
  const tall = Math.min(0.72, Math.max(0.45, (high[1] - low[1]) / span));
  const height = Math.round((width - 2 * margin) * tall) + 2 * margin + 20;
  const unit = Math.min((width - 2 * margin) / span, (height - 2 * margin - 20) / Math.max(high[1] - low[1], 1));
  const [midX, midY] = [0, 1].map(k => (low[k] + high[k]) / 2);
  const x = value => width / 2 + (value - midX) * unit;
  const y = value => (height - 20) / 2 - (value - midY) * unit;
  const said = `${factor.labels.length} groups of ${short(factor.name)}`;
  const svg = picture(width, height, 'The fused cloud', said, 'cloud');
  svg.append(density(x, y, unit), ...dots(factor, chosen, x, y), ...rings(factor, chosen, x, y));
  const color = colors(factor);
  const large = [...factor.labels.keys()].filter(k => chosen === null ? color[k] !== 'other' : chosen === k)
    .map(k => ({ name: factor.labels[k], x: x(factor.means[k][0]), y: y(factor.means[k][1]) }));
  svg.append(...labels(large, 0, width, height - 20));
  svg.append(text(found.second === 'between' ? '→ separates most, ↑ next' : '→ separates most', width - 4, height - 5, 'end', 'axis'));
  return svg;
}

function density(x, y, unit) {
  const found = data.projection.density;
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
function dots(factor, chosen, x, y) {
  const points = data.projection.points;
  if (!points) return [];
  const color = colors(factor), codes = points.codes[factor.name], paths = new Map();
  points.at.forEach(([px, py], k) => {
    const own = codes[k];
    const kind = own < 0 ? 'other' : chosen === null ? color[own] : own === chosen ? (color[own] === 'other' ? 'c1' : color[own]) : 'faint';
    paths.set(kind, `${paths.get(kind) || ''}M${x(px).toFixed(1)} ${y(py).toFixed(1)}h0`);
  });
  const order = [...paths.keys()].sort((a, b) => (b === 'faint') - (a === 'faint') || (b === 'other') - (a === 'other'));
  return order.map(kind => draw('path', { d: paths.get(kind), class: `dots ${kind}` }));
}

function rings(factor, chosen, x, y) {
  const color = colors(factor);
  const seen = [...factor.labels.keys()].filter(k => chosen === null ? color[k] !== 'other' || factor.labels.length <= 200 : k === chosen);
  return seen.map(k => {
    const kind = chosen === k && color[k] === 'other' ? 'c1' : color[k];
    const found = draw('circle', { cx: x(factor.means[k][0]).toFixed(1), cy: y(factor.means[k][1]).toFixed(1), r: kind === 'other' ? 3.5 : 6.5, class: `mean ${kind}` });
    found.addEventListener('pointerenter', () => tell([isolated(factor.labels[k]), 'mean of its rows'], found.getBoundingClientRect()));
    found.addEventListener('pointerleave', hush);
    return found;
  });
}
