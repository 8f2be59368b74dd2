// Scales with round ticks.
function step(span, parts) {
  const power = 10 ** Math.floor(Math.log10(span / parts));
  return [1, 2, 5, 10].map(k => k * power).find(size => span / size <= parts);
}

// From 0, or below where a value is, to the next tick above the largest.
function scale(values, start, end, parts = 5) {
  const finite = values.filter(Number.isFinite);
  const lowest = Math.min(0, ...finite), high = Math.max(...finite, lowest + 0.01);
  const low = -lowest < 0.02 * high ? 0 : lowest; // an estimate a little below 0 is drawn at 0
  const size = step(1.02 * (high - low), parts);
  const from = size * Math.floor(low / size + 1e-9), to = size * Math.ceil(1.02 * high / size - 1e-9);
  const map = value => start + (Math.min(Math.max(value, from), to) - from) / (to - from) * (end - start);
  map.ticks = Array.from({ length: Math.round((to - from) / size) + 1 }, (_, k) => from + k * size);
  map.text = value => String(Number(value.toPrecision(6))).replace('-', '−');
  map.to = to;
  return map;
}

const text = (words, x, y, anchor = 'middle', kind = 'tick') =>
  draw('text', { x: x.toFixed(1), y: y.toFixed(1), 'text-anchor': anchor, class: kind }, words);

const line = (x1, y1, x2, y2, kind) =>
  draw('line', { x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1), class: kind });

// A picture with a name, and what it says in words for those who do not see it.
function picture(width, height, title, words, kind) {
  const inner = [draw('title', {}, title), draw('desc', {}, words)];
  return draw('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', class: kind, 'aria-label': `${title}. ${words}` }, ...inner);
}
