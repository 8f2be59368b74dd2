// Distance of each period to the reference, its interval, and from where on there is an alarm.
function drift() {
  const found = data.drift;
  const box = make('div', { class: 'figure' });
  body('drift').append(box, make('p', { class: 'note' }, ...found.told.flatMap(said => [`${said}.`, make('br')])), driftTable(found));
  fitted(box, width => box.replaceChildren(paintDrift(found, width)));
}

function paintDrift(found, width) {
  const height = 280, left = 46, right = 14, top = 24, bottom = 46, floor = height - bottom;
  const value = k => real(found.unbiased[k]);
  const each = name => (found[name] || []).map(real);
  const number_of = found.periods.length;
  const x = k => left + (k + 0.5) * (width - left - right) / number_of;
  const drawn = [...each('unbiased'), ...each('lower'), ...each('upper')].filter(Number.isFinite);
  const most = 1.5 * Math.max(...drawn); // a limit far above everything is left outside
  const y = scale([...drawn, ...each('limit').filter(limit => limit < most)], floor, top);
  const alarms = found.periods.filter((_, k) => found.alarm[k]).map(period => short(period));
  const said = alarms.length ? `alarms: ${alarms.slice(0, 20).join(', ')}` : 'no alarm';
  const svg = picture(width, height, `CFD over ${short(found.time)}`, said, 'drift');
  for (const tick of y.ticks) svg.append(line(left, y(tick), width - right, y(tick), 'grid'), text(y.text(tick), left - 7, y(tick) + 4, 'end'));
  const every = Math.ceil(number_of * 76 / (width - left - right));
  found.periods.forEach((period, k) => { if (k % every === 0) svg.append(text(short(period, 11), x(k), floor + 18)); });
  if (found.limit) {
    const limits = found.limit.map((limit, k) => [k, real(limit)]).filter(([, limit]) => Number.isFinite(limit) && limit <= y.to);
    svg.append(draw('path', { class: 'limit', d: limits.map(([k, limit], n) => `${n ? 'L' : 'M'}${x(k).toFixed(1)} ${y(limit).toFixed(1)}`).join('') }));
  }
  found.periods.forEach((period, k) => svg.append(...periodMarks(found, k, x(k), y, value(k))));
  svg.append(text(`↑ CFD to the first ${found.reference.length}`, 2, 12, 'start', 'axis'), text(`${short(found.time, 16)} →`, width - right, height - 6, 'end', 'axis'));
  return svg;
}

function periodMarks(found, k, px, y, value) {
  if (!Number.isFinite(value)) return [];
  const color = found.alarm[k] ? 'c1' : 'c0';
  const low = real(found.lower && found.lower[k]), high = real(found.upper && found.upper[k]);
  const dot = found.alarm[k]
    ? draw('rect', { x: (px - 5.5).toFixed(1), y: (y(value) - 5.5).toFixed(1), width: 11, height: 11, transform: `rotate(45 ${px.toFixed(1)} ${y(value).toFixed(1)})`, class: `point ${color}` })
    : draw('circle', { cx: px.toFixed(1), cy: y(value).toFixed(1), r: 5, class: `point ${color}` });
  const words = [isolated(found.periods[k]), `CFD ${number(value)}`, ...(Number.isFinite(low) ? [`${number(low)} to ${number(high)}`] : []),
    ...(found.pvalue ? [`p ${probability(found.pvalue[k])}${found.alarm[k] ? ', alarm' : ''}`] : [])];
  dot.addEventListener('pointerenter', () => tell(words, dot.getBoundingClientRect()));
  dot.addEventListener('pointerleave', hush);
  return [Number.isFinite(low) ? line(px, y(low), px, y(high), `error ${color}`) : null, dot].filter(Boolean);
}

function driftTable(found) {
  const header = [found.time, 'rows', 'CFD', 'plug-in', 'lower', 'upper', 'p', 'alarm'].map(name => short(name));
  const rows = found.periods.map((period, k) => [named(period, 24), whole(found.count[k]), number(found.unbiased[k]), number(found.distance[k]), number(found.lower && found.lower[k]),
    number(found.upper && found.upper[k]), probability(found.pvalue && found.pvalue[k]), found.alarm[k] ? 'alarm' : found.incomparable[k] ? 'incomparable' : '']);
  return make('details', { class: 'list' }, make('summary', {}, `All ${found.periods.length} periods`), table('Periods', header, rows));
}
