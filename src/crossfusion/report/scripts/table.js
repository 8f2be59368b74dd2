// Tables, and the two ways to look at pairs: unadjusted, and adjusted for the label.
function table(caption, header, rows, attributes = {}) {
  const cell = (tag, scope) => entry => make(tag, { scope }, entry);
  const head = make('thead', {}, make('tr', {}, ...header.map(cell('th', 'col'))));
  const lines = rows.map(([first, ...rest]) => make('tr', {}, make('th', { scope: 'row' }, first), ...rest.map(cell('td'))));
  const inner = make('table', attributes, make('caption', {}, caption), head, make('tbody', {}, ...lines));
  return make('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': `Table: ${caption}` }, inner);
}

const question = data.question;
const between = joined(question.between);
const given = joined(question.given);
const VIEWS = [['adjusted', `adjusted for ${given}`], ['plain', 'unadjusted']].filter(([key]) => data.pairs[key]);
let view = VIEWS[0][0];
const watchers = [];

function look(key) {
  view = key;
  watchers.forEach(paint => paint());
  document.querySelectorAll('select[data-view]').forEach(select => { select.value = key; });
}

function viewChoice() {
  if (VIEWS.length < 2) return null;
  const label = choice('Compare', VIEWS, look, view);
  label.querySelector('select').dataset.view = '';
  return label;
}

// Interval and p-values of a pair, in words.
function evidence(pairs, k) {
  const lines = [];
  if (pairs.overlap[k] === 0) return ['nothing to compare: no stratum holds both'];
  if (Number.isNaN(shown(pairs, k))) return ['no variance within groups is known'];
  if (pairs.lower && pairs.lower[k] !== null) {
    lines.push(`${100 * pairs.level}% interval ${number(pairs.lower[k])} to ${number(pairs.upper[k])}`);
  }
  if (pairs.pvalue && pairs.pvalue[k] !== null) {
    lines.push(`p ${probability(pairs.pvalue[k])}, adjusted ${probability(pairs.adjusted[k])}`);
  }
  lines.push(`${ofVariance(shown(pairs, k))} of the variance between the two`);
  return lines;
}
