// Batch versus biology: left is fused, up is what should stay.
function spots() {
  const ends = point => ({ value: real(point.value), low: real(point.interval && point.interval[0]), high: real(point.interval && point.interval[1]) });
  if (data.plane === 'methods') {
    const found = data.methods;
    return found.names.map((name, k) => ({
      name, x: ends(found.batch[k]), y: found.biology ? ends(found.biology[k]) : null,
      ring: null, main: name === found.reference,
    }));
  }
  return data.batches.map(entry => ({
    name: entry.name, x: ends(entry.batch), y: ends(entry.biology),
    ring: [real(entry.plain.value), real(entry.labels.value)], main: question.between.includes(entry.name),
  }));
}

function plane() {
  const all = spots(), shown = all.filter(spot => spot.y && Number.isFinite(spot.x.value) && Number.isFinite(spot.y.value));
  const box = make('div', { class: 'figure' });
  const remarks = data.plane === 'methods' ? data.methods.remarks.map(remark => make('p', { class: 'note' }, `${remark}.`)) : [];
  const side = make('div', {}, inNumbers(all), ...remarks);
  body(data.plane === 'methods' ? 'versions' : 'plane').append(shown.length ? make('div', { class: 'pair' }, box, side) : side);
  if (shown.length) fitted(box, width => box.replaceChildren(paintPlane(shown, width)));
}

function paintPlane(shown, width) {
  const height = Math.round(Math.min(420, Math.max(300, 0.75 * width)));
  const left = 46, right = 14, top = 30, bottom = 44;
  const span = (spot, axis, k) => [spot[axis].value, spot[axis].low, spot[axis].high, spot.ring ? spot.ring[k] : NaN];
  const x = scale(shown.flatMap(spot => span(spot, 'x', 0)), left, width - right);
  const y = scale(shown.flatMap(spot => span(spot, 'y', 1)), height - bottom, top);
  const said = shown.map(spot => `${short(spot.name)} at ${number(spot.x.value)}, ${number(spot.y.value)}`).join('; ');
  const found = picture(width, height, data.plane === 'methods' ? 'Versions of the rows' : 'Batch versus biology', said, 'plane');
  for (const tick of x.ticks) found.append(line(x(tick), top, x(tick), height - bottom, 'grid'), text(x.text(tick), x(tick), height - bottom + 17));
  for (const tick of y.ticks) found.append(line(left, y(tick), width - right, y(tick), 'grid'), text(y.text(tick), left - 7, y(tick) + 4, 'end'));
  const batch = short(data.plane === 'methods' ? between : 'batch', 14), label = short(given, 14);
  found.append(text(`CFD(${batch} | ${label}) →`, width - right, height - 6, 'end', 'axis'));
  found.append(text(`↑ CFD(${label} | ${batch})`, 2, 14, 'start', 'axis'));
  shown.forEach((spot, k) => found.append(...marks(spot, `c${k % 8}`, x, y)));
  found.append(...labels(shown.map(spot => ({
    name: spot.name, x: x(spot.x.value), y: y(spot.y.value), above: Number.isFinite(spot.x.low), away: spot.ring ? x(spot.ring[0]) : NaN,
  })), left, width, height - bottom));
  return found;
}

function marks(spot, color, x, y) {
  const [px, py] = [x(spot.x.value), y(spot.y.value)];
  const found = [];
  if (spot.ring && spot.ring.every(Number.isFinite)) {
    const [rx, ry] = [x(spot.ring[0]), y(spot.ring[1])];
    found.push(line(rx, ry, px, py, `link ${color}`), draw('circle', { cx: rx, cy: ry, r: 6, class: `ring ${color}` }));
  }
  if (Number.isFinite(spot.x.low)) found.push(line(x(spot.x.low), py, x(spot.x.high), py, `error ${color}`));
  if (Number.isFinite(spot.y.low)) found.push(line(px, y(spot.y.low), px, y(spot.y.high), `error ${color}`));
  found.push(draw('circle', { cx: px.toFixed(1), cy: py.toFixed(1), r: spot.main ? 6 : 5, class: `point ${color}` }));
  return found;
}

const GAP = 18;  // between names side by side, as widths are estimated

// Names beside their points, on the side without a line, and lower or higher where another name would be in the way.
function labels(spots, left, width, floor) {
  const placed = spots.map(spot => ({ y: spot.y + 4, from: spot.x - 7 + GAP, to: spot.x + 7 - GAP, spot })); // points are not written over
  const found = [];
  for (const spot of [...spots].sort((a, b) => a.y - b.y)) {
    const words = short(spot.name, 16), wide = 7.4 * [...words].length;
    const before = (spot.away > spot.x && spot.x - wide - 12 > left - 8) || spot.x + wide + 12 > width;
    const from = before ? spot.x - 12 - wide : spot.x + 12;
    const free = y => !placed.some(box => box.spot !== spot && Math.abs(box.y - y) < 17 && box.from < from + wide + GAP && from < box.to + GAP);
    const start = spot.above ? -9 : 4; // above the line of its interval
    const offsets = Array.from({ length: 40 }, (_, k) => start + (k % 2 ? -1 : 1) * 6 * Math.ceil(k / 2));
    const y = offsets.map(offset => spot.y + offset).find(height => height > 12 && height < floor && free(height)) ?? spot.y + 4;
    placed.push({ y, from, to: from + wide });
    found.push(text(words, before ? spot.x - 12 : spot.x + 12, y, before ? 'end' : 'start', 'spot'));
  }
  return found;
}

function inNumbers(all) {
  const ended = end => make('span', {}, number(end.value),
    Number.isFinite(end.low) ? make('small', {}, `${number(end.low)} to ${number(end.high)}`) : null);
  const biology = all.some(spot => spot.y);
  const methods = data.plane === 'methods';
  const batch = methods ? joined(question.between) : 'batch';
  const header = [methods ? 'version' : 'batch', given ? `CFD(${batch} | ${given})` : `CFD(${batch})`,
    ...(biology ? [`CFD(${given} | ${batch})`] : []), ...(methods ? ['closer by', ...(biology ? ['standing'] : [])] : [])];
  const rows = all.map((spot, k) => [
    make('span', {}, make('i', { class: `swatch c${k % 8}`, 'aria-hidden': 'true' }), named(spot.name, 24)),
    ended(spot.x), ...(biology ? [ended(spot.y)] : []),
    ...(methods ? [spot.main ? 'reference' : gain(k), ...(biology ? [data.methods.standing[k]] : [])] : []),
  ]);
  const text = methods ? 'Versions in numbers; the first column should be small, the second large'
    : 'The same in numbers; rings are the factors before adjusting, dashed lines what is confounded';
  return table(text, header, rows, { class: 'wrap' });
}

function gain(k) {
  const found = data.methods;
  const value = number(-real(found.difference[k]));
  const limits = found.lower ? make('small', {}, `${number(-real(found.upper[k]))} to ${number(-real(found.lower[k]))}`) : null;
  return make('span', {}, value, limits);
}
