// The test statistic under permuted labels, and where the observed one lies.
const BINS = 36;

function chance() {
  const test = data.test;
  const box = make('div', { class: 'figure' });
  const kind = test.exact ? 'all that exist' : 'drawn at random';
  const words = `Observed ${test.statistic_label} ${number(test.statistic)}, p = ${probability(test.pvalue)}; ${whole(test.permutations)} permutations, ${kind}.`;
  body('null').append(box, make('p', { class: 'note' }, words));
  if (test.null.length) fitted(box, width => box.replaceChildren(histogram(test, width, words)));
}

function histogram(test, width, words) {
  const height = 210, left = 8, right = 14, bottom = 40, top = 24;
  const x = scale([...test.null, real(test.statistic)], left, width - right, width > 500 ? 8 : 4);
  const size = (width - left - right) / BINS;
  const count = new Array(BINS).fill(0);
  for (const value of test.null) count[Math.min(BINS - 1, Math.max(0, Math.floor((x(value) - left) / size)))] += 1;
  const most = Math.max(...count), floor = height - bottom;
  const svg = picture(width, height, `${test.statistic_label} by chance`, words, 'null');
  count.forEach((number, k) => {
    const tall = (floor - top) * number / most;
    if (number) svg.append(draw('rect', { x: (left + k * size + 0.5).toFixed(1), y: (floor - tall).toFixed(1), width: (size - 1).toFixed(1), height: tall.toFixed(1), class: 'by-chance' }));
  });
  svg.append(line(left, floor, width - right, floor, 'floor'));
  for (const tick of x.ticks) svg.append(text(x.text(tick), x(tick), floor + 17, tick === x.ticks[0] ? 'start' : tick === x.to ? 'end' : 'middle'));
  const place = x(real(test.statistic)), right_side = place > width / 2;
  svg.append(line(place, top - 8, place, floor, 'observed'));
  svg.append(text('observed', place + (right_side ? -7 : 7), top, right_side ? 'end' : 'start', 'spot'));
  svg.append(text(`${test.statistic_label} by chance →`, width - right, height - 4, 'end', 'axis'));
  return svg;
}
