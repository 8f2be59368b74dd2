// All that is known of a pair, in a panel beside the page.
let opener = null; // what had the focus before the panel was opened

function choosePair(i, j) {
  const box = body('pair');
  const title = make('h3', { tabindex: -1 }, named(groups.names[i]), ' and ', named(groups.names[j]));
  const k = place(i, j);
  const columns = [['unbiased', 'estimate', number], ['lower', 'lower limit', number],
    ['upper', 'upper limit', number], ['distance', 'plug-in', number], ['pvalue', 'p', probability], ['adjusted', 'p, adjusted', probability], ['overlap', 'overlap', percent]];
  const kept = columns.filter(([name]) => VIEWS.some(([key]) => data.pairs[key][name]));
  const rows = kept.map(([name, words, write]) => [words, ...VIEWS.map(([key]) => write(at(data.pairs[key], name, k)))]);
  const said = VIEWS.map(([key, words]) => {
    const value = shown(data.pairs[key], k);
    return Number.isNaN(value) ? `Nothing can be compared ${words}.` : `${ofVariance(value)} of the variance of these two lies between them, ${words}.`;
  });
  const sizes = [i, j].map(g => {
    const units = groups.units ? `, ${whole(groups.units[g])} ${joined(question.units)} units` : '';
    return make('li', {}, fullName(groups.names[g]), `: ${whole(groups.rows[g])} rows${units}, variance ${quantity(groups.dispersion[g])}`);
  });
  box.replaceChildren(title, make('p', {}, said.join(' ')), make('ul', {}, ...sizes),
    table('This pair in numbers', ['CFD', ...VIEWS.map(([, words]) => words)], rows, { class: 'wrap' }));
  opener = document.activeElement;
  document.getElementById('pair').hidden = false;
  hush();
  title.focus({ preventScroll: true });
}

// A name in full: behind a cut one that opens, where it is long.
function fullName(name) {
  if (short(name) === name) return make('bdi', {}, name);
  return make('details', { class: 'full' }, make('summary', {}, make('bdi', {}, short(name))), make('bdi', {}, name));
}

function closePair() {
  const box = document.getElementById('pair');
  if (box.hidden) return;
  box.hidden = true;
  if (opener) opener.focus();
}

function panel() {
  document.getElementById('pair-close').addEventListener('click', closePair);
  addEventListener('keydown', event => { if (event.key === 'Escape') closePair(); });
}
